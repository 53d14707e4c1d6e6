#pragma once

#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "syncopate/sim/steps/pieces.h"
#include "syncopate/sim/steps/workers.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::sim {

/// An average on its way.
struct Flight {
  Piece piece{};
  int first = -1, second = -1;   ///< operations; -1: no second round
  std::vector<int64_t> parts{};  ///< elements of a coded piece, by owner
  CodecSpeed speed{};
  bool two_rounds = false;
};
using FlightPtr = std::shared_ptr<Flight>;

/// Averages of pieces over all workers, as the averagers of parallel/ make them: started, and later waited
/// for in the same order. Packing for a start counts as the caller says, all else as exchange.
class Averages {
 public:
  Averages(Workers& workers, const StepsOf& what);

  /// By the run's codec.
  FlightPtr start(const Piece& piece, Account account);
  /// In fp32, whatever the codec.
  FlightPtr sum(const Piece& piece);
  /// By a codec with so many bytes for an element.
  FlightPtr coded(const Piece& piece, double bytes, const CodecSpeed& speed, Account account);
  void finish(const FlightPtr& flight);

  const spec::CodecInfo& codec() const { return codec_; }
  /// Of the run's codec.
  const CodecSpeed& speed() const { return speed_; }

 private:
  FlightPtr thin(const Piece& piece, Account account);
  void begin_second_rounds();

  Workers& workers_;
  const spec::RunSpec& spec_;
  const spec::CodecInfo& codec_;
  CodecSpeed speed_;
  std::deque<FlightPtr> in_first_round_{};
};

/// Of a codec on this machine; one that was not measured takes no time.
CodecSpeed speed_of(const Profile& profile, std::string_view codec);

}  // namespace syncopate::sim
