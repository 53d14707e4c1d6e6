#include "syncopate/sim/steps/averages.h"

#include <algorithm>

#include "syncopate/base/share.h"

namespace syncopate::sim {
namespace {

std::vector<double> part_bytes(const std::vector<int64_t>& parts, double bytes_of_element) {
  std::vector<double> bytes;
  for (const int64_t part : parts) bytes.push_back(bytes_of_element * static_cast<double>(part));
  return bytes;
}

}  // namespace

CodecSpeed speed_of(const Profile& profile, std::string_view codec) {
  CodecSpeed speed;
  for (const CodecSpeed& each : profile.codecs) {
    if (each.name == codec) speed = each;
  }
  return speed;
}

Averages::Averages(Workers& workers, const StepsOf& what)
    : workers_(workers),
      spec_(what.spec),
      codec_(spec::codec_info(spec_.codec.name)),
      speed_(speed_of(what.profile, codec_.name)) {}

FlightPtr Averages::start(const Piece& piece, Account account) {
  if (codec_.packing == spec::Packing::kNone) return sum(piece);
  if (codec_.packing == spec::Packing::kLowRank) return thin(piece, account);
  const double share = codec_.some_elements ? spec_.codec.ratio : 1;
  return coded(piece, codec_.bytes * share, speed_, account);
}

FlightPtr Averages::sum(const Piece& piece) {
  auto flight = std::make_shared<Flight>(Flight{.piece = piece});
  flight->first = workers_.all_reduce(piece.fp32_bytes(), 4);
  workers_.start(flight->first);
  return flight;
}

FlightPtr Averages::coded(const Piece& piece, double bytes, const CodecSpeed& speed, Account account) {
  const int ranks = workers_.count();
  auto flight = std::make_shared<Flight>(Flight{.piece = piece, .speed = speed, .two_rounds = true});
  for (int rank = 0; rank < ranks; ++rank)
    flight->parts.push_back(share_of(piece.elements, rank, ranks, kPackedGrain).size());
  const double whole = static_cast<double>(piece.elements);
  const std::vector<double> parts = part_bytes(flight->parts, bytes);
  Engine& engine = workers_.engine();
  flight->first = engine.exchange(parts, true, speed.encode_s * whole / ranks, workers_.group());
  flight->second = engine.exchange(parts, false, 0, workers_.group());
  workers_.start(flight->first);
  workers_.compute(account, [&](int rank) {
    return speed.encode_s * (whole - static_cast<double>(flight->parts[static_cast<size_t>(rank)]));
  });
  in_first_round_.push_back(flight);
  return flight;
}

/// By PowerSGD's two thin matrices for one that is larger than both.
FlightPtr Averages::thin(const Piece& piece, Account account) {
  auto flight = std::make_shared<Flight>(Flight{.piece = piece, .speed = speed_, .two_rounds = true});
  int64_t plain = piece.elements, tall = 0, wide = 0;
  for (const Matrix& matrix : piece.matrices) {
    const int64_t rank = std::min({spec_.codec.rank, matrix.rows, matrix.columns});
    if ((matrix.rows + matrix.columns) * rank >= matrix.rows * matrix.columns) continue;
    plain -= matrix.rows * matrix.columns;
    tall += rank * matrix.rows;
    wide += rank * matrix.columns;
  }
  workers_.spend(account, speed_.encode_s * static_cast<double>(piece.elements));
  flight->first = workers_.all_reduce(4.0 * static_cast<double>(std::max<int64_t>(plain + tall, 1)), 4);
  if (wide > 0) flight->second = workers_.all_reduce(4.0 * static_cast<double>(wide), 4);
  workers_.start(flight->first);
  in_first_round_.push_back(flight);
  return flight;
}

/// When somebody first waits, for all that were started.
void Averages::begin_second_rounds() {
  for (; !in_first_round_.empty(); in_first_round_.pop_front()) {
    const Flight& flight = *in_first_round_.front();
    const CodecSpeed& speed = flight.speed;
    workers_.wait(flight.first);
    if (flight.parts.empty()) {
      workers_.spend(Account::kExchange, speed.decode_s * static_cast<double>(flight.piece.elements) / 2);
      if (flight.second >= 0) workers_.start(flight.second);
      continue;
    }
    const auto own = [&](int rank) { return static_cast<double>(flight.parts[static_cast<size_t>(rank)]); };
    workers_.compute(Account::kExchange, [&](int rank) {
      return own(rank) * (speed.decode_s * (workers_.count() - 1) + speed.encode_s);
    });
    workers_.start(flight.second);
    workers_.compute(Account::kExchange, [&](int rank) { return speed.decode_s * own(rank); });
  }
}

void Averages::finish(const FlightPtr& flight) {
  if (!flight->two_rounds) return workers_.wait(flight->first);
  begin_second_rounds();
  if (flight->second >= 0) workers_.wait(flight->second);
  const auto elements = static_cast<double>(flight->piece.elements);
  const double decode_s = flight->speed.decode_s;
  if (flight->parts.empty()) return workers_.spend(Account::kExchange, decode_s * elements / 2);
  workers_.compute(Account::kExchange, [&](int rank) {
    return decode_s * (elements - static_cast<double>(flight->parts[static_cast<size_t>(rank)]));
  });
}

}  // namespace syncopate::sim
