#include "syncopate/sim/steps.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::sim {
namespace {

using spec::Packing;

/// Flat arrays begin every tensor at a multiple of so many elements.
int64_t laid_out(int64_t elements) { return (elements + 15) / 16 * 16; }

double rate(double gbyte) { return gbyte > 0 ? 1e9 * gbyte : 1e15; }

/// A matrix of a piece, for the codec that makes thin ones of it.
struct Matrix {
  int64_t rows = 0, columns = 0;
};

/// Elements that are averaged in one go.
struct Piece {
  int64_t elements = 0;
  std::vector<Matrix> matrices{};
};

struct Bucket {
  Piece piece{};
  double ready = 0;        ///< share of the backward pass
  int64_t table_rows = 0;  ///< of an embedding table that is exchanged by rows; 0: none
  int64_t columns = 0;
  double rows_read = 0;  ///< by all workers together
};

Matrix matrix_of(const ParameterProfile& parameter) {
  if (parameter.shape.size() < 2 || parameter.elements() == 0) return {};
  return {parameter.shape.front(), parameter.elements() / parameter.shape.front()};
}

/// Rows of a table that so many examples read together. Words repeat: of twice the text, less than twice as
/// many are new (docs/advice.md).
double rows_read(const ParameterProfile& parameter, const Profile& profile, double examples) {
  constexpr double kGrowth = 0.7;
  const auto measured_on = static_cast<double>(profile.times[profile.times.size() / 2].batch);
  const double rows = parameter.rows * measured_on * std::pow(examples / measured_on, kGrowth);
  return std::min(rows, static_cast<double>(parameter.shape.front()));
}

Piece piece_of(const ParameterProfile& parameter) {
  Piece piece{.elements = parameter.elements()};
  if (const Matrix matrix = matrix_of(parameter); matrix.rows > 0) piece.matrices.push_back(matrix);
  return piece;
}

class Writer {
 public:
  Writer(Engine& engine, const StepsOf& what)
      : engine_(engine),
        what_(what),
        spec_(what.spec),
        local_(what.profile.local),
        ranks_(static_cast<int>(what.workers.size())),
        codec_(spec::codec_info(spec_.codec.name)) {
    for (const CodecSpeed& each : what.profile.codecs) {
      if (each.name == codec_.name) speed_ = each;
    }
    for (int place = 0; place < ranks_; ++place)
      actors_.push_back(engine_.actor(what_.ranks.empty() ? place : what_.ranks[static_cast<size_t>(place)]));
    if (staged()) group_ = engine_.group(what_.ranks);
  }

  void write(int64_t steps) {
    const spec::StrategyInfo& strategy = spec::strategy_info(spec_.strategy.name);
    mark();
    if (strategy.has_servers) return write_server_steps(steps);
    for (int64_t step = 0; step < steps; ++step) {
      step_ = step;
      if (strategy.rhythm == spec::Rhythm::kLocal) {
        local_step(step);
      } else if (ranks_ == 1 || strategy.rhythm == spec::Rhythm::kFree ||
                 strategy.pattern == spec::Pattern::kNothing) {
        own_step();
      } else if (one_bit_adam()) {
        one_bit_step();
      } else if (heeds(strategy, "bucket_mib")) {
        overlapped_step();
      } else {
        every_step(strategy.pattern == spec::Pattern::kGatherScatter);
      }
      mark();
    }
  }

 private:
  using Seconds = std::function<double(int rank)>;

  static bool heeds(const spec::StrategyInfo& strategy, const char* setting) {
    return std::count(strategy.settings.begin(), strategy.settings.end(), setting) > 0;
  }
  bool staged() const { return what_.crossings != nullptr; }
  bool one_bit_adam() const {
    return codec_.packing == Packing::kSigns && spec::optimizer_info(spec_.optim.name).one_bit_adam;
  }

  // --- What all workers do ---
  void all(const Action& action) {
    for (const int actor : actors_) engine_.script(actor).push_back(action);
  }
  void mark() { all({.kind = Action::Kind::kMark}); }
  void start(int operation) { all({.kind = Action::Kind::kStart, .operation = operation}); }
  void wait(int operation) { all({.kind = Action::Kind::kWait, .operation = operation}); }
  void compute(Account account, const Seconds& seconds) {
    for (int rank = 0; rank < ranks_; ++rank) {
      engine_.script(actors_[static_cast<size_t>(rank)])
          .push_back({.kind = Action::Kind::kCompute, .account = account, .seconds = seconds(rank)});
    }
  }
  void work(double RankTime::*part, double share = 1) {
    for (int rank = 0; rank < ranks_; ++rank) {
      engine_.script(actors_[static_cast<size_t>(rank)])
          .push_back({.kind = Action::Kind::kCompute,
                      .account = part == &RankTime::data ? Account::kData : Account::kCompute,
                      .seconds = share * (what_.workers[static_cast<size_t>(rank)].*part),
                      .asleep = part == &RankTime::sleep});
    }
  }
  void spend(Account account, double seconds) {
    compute(account, [=](int) { return seconds; });
  }

  // --- The common parts of a step ---
  /// Up to the last backward pass: micro-batches before the last run whole.
  void forward() {
    const double micro = micro_batches();
    work(&RankTime::data);
    if (staged()) return cross(&Crossings::until_last_backward);
    if (micro > 1) {
      work(&RankTime::forward, (micro - 1) / micro);
      work(&RankTime::backward, (micro - 1) / micro);
    }
    work(&RankTime::forward, 1 / micro);
  }
  void backward(double share) {
    if (staged() && std::exchange(last_begun_, step_) != step_) cross(&Crossings::before_last_backward);
    work(&RankTime::backward, share / micro_batches());
  }
  double micro_batches() const {
    return static_cast<double>(std::max<int64_t>(1, spec_.train.accumulate * spec_.micro_batches()));
  }
  using Crossing = void (Crossings::*)(int64_t step, size_t stage, size_t replica, int actor, double slow);
  void cross(Crossing part) {
    for (int place = 0; place < ranks_; ++place) {
      const auto replica = static_cast<size_t>(place);
      (what_.crossings->*part)(step_, what_.stage, replica, actors_[replica], what_.workers[replica].slow);
    }
  }
  /// The rest of the backward pass, and the sleep behind it of a worker that is made slow: by then buckets
  /// are on their way.
  void end_backward(double share = 1) {
    backward(share);
    if (staged()) cross(&Crossings::behind_last_backward);
    work(&RankTime::sleep);
  }
  /// Losses, counts and wishes of a step, and losses of steps before it that were not told yet.
  int totals(int64_t earlier) {
    const int sums = staged() ? what_.crossings->totals(step_, earlier)
                              : engine_.all_reduce(16.0 * static_cast<double>(2 + earlier), 8);
    start(sums);
    return sums;
  }
  void own_step() {
    forward();
    const int sums = staged() ? totals(0) : -1;
    end_backward();
    if (staged()) wait(sums);
    finish_step();
  }
  void finish_step() {
    update();
    work(&RankTime::other);
  }
  /// Clipping needs the norm of all stages.
  void update() {
    if (staged() && spec_.optim.clip > 0) {
      for (const Action::Kind kind : {Action::Kind::kStart, Action::Kind::kWait}) {
        for (size_t replica = 0; replica < actors_.size(); ++replica)
          engine_.script(actors_[replica])
              .push_back({.kind = kind, .operation = what_.crossings->norm(step_, replica)});
      }
    }
    work(&RankTime::update);
  }

  // --- Averagers: what was started, and how it ends ---
  struct Flight {
    Piece piece{};
    int first = -1, second = -1;
    std::vector<int64_t> parts{};  ///< of a coded piece, by owner
    const CodecSpeed* speed = nullptr;
    double bytes = 0;  ///< of a packed element
    bool two_rounds = false;
  };
  using FlightPtr = std::shared_ptr<Flight>;

  FlightPtr average(const Piece& piece, Account account) {
    if (codec_.packing == Packing::kNone) return summed(piece);
    if (codec_.packing == Packing::kLowRank) return thin(piece, account);
    const double share = codec_.some_elements ? spec_.codec.ratio : 1;
    return coded(piece, codec_.bytes * share, speed_, account);
  }

  FlightPtr summed(const Piece& piece) {
    auto flight = std::make_shared<Flight>(Flight{.piece = piece});
    flight->first = engine_.all_reduce(4.0 * static_cast<double>(piece.elements), 4, group_);
    start(flight->first);
    return flight;
  }

  FlightPtr coded(const Piece& piece, double bytes, const CodecSpeed& speed, Account account) {
    constexpr int64_t kGrain = 512;
    auto flight =
        std::make_shared<Flight>(Flight{.piece = piece, .speed = &speed, .bytes = bytes, .two_rounds = true});
    const int64_t grains = (piece.elements + kGrain - 1) / kGrain;
    const auto begin = [&](int rank) { return std::min(piece.elements, grains * rank / ranks_ * kGrain); };
    for (int rank = 0; rank < ranks_; ++rank) flight->parts.push_back(begin(rank + 1) - begin(rank));
    const double whole = static_cast<double>(piece.elements);
    flight->first = engine_.exchange(part_bytes(*flight), true, speed.encode_s * whole / ranks_, group_);
    flight->second = engine_.exchange(part_bytes(*flight), false, 0, group_);
    start(flight->first);
    compute(account, [=](int rank) {
      return speed.encode_s * (whole - static_cast<double>(flight->parts[static_cast<size_t>(rank)]));
    });
    to_turn_.push_back(flight);
    return flight;
  }

  static std::vector<double> part_bytes(const Flight& flight) {
    std::vector<double> bytes;
    for (const int64_t part : flight.parts) bytes.push_back(flight.bytes * static_cast<double>(part));
    return bytes;
  }

  FlightPtr thin(const Piece& piece, Account account) {
    auto flight = std::make_shared<Flight>(Flight{.piece = piece, .speed = &speed_, .two_rounds = true});
    int64_t plain = piece.elements, tall = 0, wide = 0;
    for (const Matrix& matrix : piece.matrices) {
      const int64_t rank = std::min({spec_.codec.rank, matrix.rows, matrix.columns});
      if ((matrix.rows + matrix.columns) * rank >= matrix.rows * matrix.columns) continue;
      plain -= matrix.rows * matrix.columns;
      tall += rank * matrix.rows;
      wide += rank * matrix.columns;
    }
    spend(account, speed_.encode_s * static_cast<double>(piece.elements));
    flight->first =
        engine_.all_reduce(4.0 * static_cast<double>(std::max<int64_t>(plain + tall, 1)), 4, group_);
    if (wide > 0) flight->second = engine_.all_reduce(4.0 * static_cast<double>(wide), 4, group_);
    start(flight->first);
    to_turn_.push_back(flight);
    return flight;
  }

  /// Second rounds begin when somebody first waits, for all that were started.
  void turn_all() {
    for (; !to_turn_.empty(); to_turn_.pop_front()) {
      const FlightPtr flight = to_turn_.front();
      wait(flight->first);
      const auto elements = static_cast<double>(flight->piece.elements);
      if (flight->parts.empty()) {
        spend(Account::kExchange, flight->speed->decode_s * elements / 2);
        if (flight->second >= 0) start(flight->second);
        continue;
      }
      compute(Account::kExchange, [&](int rank) {
        const auto own = static_cast<double>(flight->parts[static_cast<size_t>(rank)]);
        return own * (flight->speed->decode_s * (ranks_ - 1) + flight->speed->encode_s);
      });
      start(flight->second);
      compute(Account::kExchange, [&](int rank) {
        return flight->speed->decode_s * static_cast<double>(flight->parts[static_cast<size_t>(rank)]);
      });
    }
  }

  void arrive(const FlightPtr& flight) {
    if (!flight->two_rounds) return wait(flight->first);
    turn_all();
    if (flight->second >= 0) wait(flight->second);
    const auto elements = static_cast<double>(flight->piece.elements);
    if (flight->parts.empty()) return spend(Account::kExchange, flight->speed->decode_s * elements / 2);
    compute(Account::kExchange, [&](int rank) {
      const auto own = static_cast<double>(flight->parts[static_cast<size_t>(rank)]);
      return flight->speed->decode_s * (elements - own);
    });
  }

  // --- gather-scatter, all-reduce: one tensor after the other, behind the backward pass ---
  void every_step(bool through_root) {
    forward();
    const int sums = totals(0);
    end_backward();
    wait(sums);
    std::vector<Piece> pieces;
    if (spec_.strategy.whole) {
      pieces.push_back(whole_model());
    } else {
      for (const ParameterProfile& parameter : what_.profile.parameters)
        pieces.push_back(piece_of(parameter));
    }
    for (const Piece& piece : pieces) {
      if (piece.elements == 0) continue;
      through_root ? gather_scatter(piece) : arrive(average(piece, Account::kExchange));
    }
    finish_step();
  }

  void gather_scatter(const Piece& piece) {
    const double bytes = 4.0 * static_cast<double>(piece.elements);
    const int gathered = engine_.gather(bytes, 0, group_), scattered = engine_.scatter(bytes, 0, group_);
    start(gathered);
    wait(gathered);
    compute(Account::kExchange,
            [&](int rank) { return rank == 0 ? bytes * (ranks_ - 1) / rate(local_.reduce_gbyte) : 0; });
    start(scattered);
    wait(scattered);
  }

  Piece whole_model() const {
    Piece whole;
    for (const ParameterProfile& parameter : what_.profile.parameters) {
      whole.elements += laid_out(parameter.elements());
      if (const Matrix matrix = matrix_of(parameter); matrix.rows > 0) whole.matrices.push_back(matrix);
    }
    return whole;
  }

  /// Between tensors, as parallel::split_between_tensors does it.
  std::vector<Piece> cut_model(int64_t parts) const {
    const auto& parameters = what_.profile.parameters;
    const auto count = static_cast<int64_t>(parameters.size());
    if (parts > count)
      throw ConfigError("fragments must be at most the model's {} parameter tensors, got {}", count, parts);
    std::vector<int64_t> edge{0};
    for (const ParameterProfile& parameter : parameters)
      edge.push_back(edge.back() + laid_out(parameter.elements()));
    const auto off = [&](int64_t place, int64_t ideal) {
      return std::abs(edge[static_cast<size_t>(place)] - ideal);
    };
    std::vector<Piece> pieces;
    for (int64_t i = 0, first = 0; i < parts; ++i) {
      const int64_t ideal = edge.back() / parts * (i + 1), latest = count - (parts - i - 1);
      int64_t last = i + 1 == parts ? count : first + 1;
      while (last < latest && off(last + 1, ideal) <= off(last, ideal)) ++last;
      Piece piece{.elements = edge[static_cast<size_t>(last)] - edge[static_cast<size_t>(first)]};
      for (; first < last; ++first) {
        const Matrix matrix = matrix_of(parameters[static_cast<size_t>(first)]);
        if (matrix.rows > 0) piece.matrices.push_back(matrix);
      }
      piece.elements = std::max<int64_t>(1, piece.elements);
      pieces.push_back(std::move(piece));
    }
    return pieces;
  }

  // --- ddp: buckets while the backward pass goes on ---
  std::vector<Bucket> buckets() const {
    std::vector<Bucket> found;
    const auto total = static_cast<double>(what_.profile.elements());
    double room = spec_.strategy.first_bucket_mib, before = 0;
    bool open = false;
    for (const ParameterProfile& parameter : what_.profile.parameters) {
      const bool by_rows = spec_.strategy.sparse_rows && parameter.rows > 0 && parameter.shape.size() == 2;
      if (!open || by_rows) found.emplace_back();
      Bucket& bucket = found.back();
      bucket.piece.elements += laid_out(parameter.elements());
      if (const Matrix matrix = matrix_of(parameter); matrix.rows > 0)
        bucket.piece.matrices.push_back(matrix);
      before += static_cast<double>(parameter.elements());
      const double ready = std::isfinite(parameter.ready) ? parameter.ready : before / total;
      bucket.ready = std::max({bucket.ready, ready, found.size() > 1 ? found[found.size() - 2].ready : 0});
      open = !by_rows && 4.0 * static_cast<double>(bucket.piece.elements) < room * 1024 * 1024;
      if (by_rows) {
        bucket.table_rows = parameter.shape[0];
        bucket.columns = parameter.shape[1];
        bucket.rows_read = rows_read(parameter, what_.profile, what_.global_batch);
      }
      if (!open) room = spec_.strategy.bucket_mib;
    }
    return found;
  }

  /// One of an embedding's rows is said to be in use before they are sent.
  int announce(const Bucket& bucket) {
    const int said = engine_.all_reduce(static_cast<double>(bucket.table_rows), 1, group_);
    start(said);
    return said;
  }

  /// The rows that are read, or the whole table where those are most of it.
  Piece rows_of(const Bucket& bucket, Account account) {
    if (2 * bucket.rows_read > static_cast<double>(bucket.table_rows)) return bucket.piece;
    const int64_t rows = std::max<int64_t>(1, std::llround(bucket.rows_read));
    const Piece piece{.elements = rows * bucket.columns, .matrices = {{rows, bucket.columns}}};
    spend(account, 2 * 4.0 * static_cast<double>(piece.elements) / rate(local_.copy_gbyte));
    return piece;
  }

  void overlapped_step() {
    forward();
    const int sums = totals(0);
    const std::vector<Bucket> all_buckets = buckets();
    std::vector<int> announced;
    for (const Bucket& bucket : all_buckets)
      announced.push_back(bucket.table_rows > 0 ? announce(bucket) : -1);
    std::vector<FlightPtr> flights;
    const auto launch = [&](size_t i, Account account) {
      const Bucket& bucket = all_buckets[i];
      if (announced[i] >= 0) wait(announced[i]);
      flights.push_back(average(announced[i] >= 0 ? rows_of(bucket, account) : bucket.piece, account));
    };
    double done = 0;
    if (spec_.strategy.overlap) {
      for (size_t i = 0; i < all_buckets.size(); ++i) {
        backward(all_buckets[i].ready - done);
        done = all_buckets[i].ready;
        launch(i, Account::kCompute);
      }
    }
    end_backward(1 - done);
    wait(sums);
    for (size_t i = flights.size(); i < all_buckets.size(); ++i) launch(i, Account::kExchange);
    for (const FlightPtr& flight : flights) arrive(flight);
    finish_step();
  }

  // --- 1-bit Adam, behind the backward pass ---
  void one_bit_step() {
    forward();
    const int sums = totals(0);
    Piece dense;
    std::vector<Bucket> tables;
    for (const ParameterProfile& parameter : what_.profile.parameters) {
      if (parameter.rows > 0 && parameter.shape.size() == 2) {
        tables.push_back({.piece = piece_of(parameter),
                          .table_rows = parameter.shape[0],
                          .columns = parameter.shape[1],
                          .rows_read = rows_read(parameter, what_.profile, what_.global_batch)});
      } else {
        dense.elements += laid_out(parameter.elements());
      }
    }
    std::vector<int> announced;
    for (const Bucket& table : tables) announced.push_back(announce(table));
    end_backward();
    wait(sums);
    const int norm = engine_.all_reduce(8, 8, group_);
    start(norm);
    wait(norm);
    const CodecSpeed* rows_speed = &speed_;
    for (const CodecSpeed& each : what_.profile.codecs) {
      if (each.name == "int8") rows_speed = &each;
    }
    std::vector<FlightPtr> flights;
    if (dense.elements > 0) flights.push_back(coded(dense, codec_.bytes, speed_, Account::kExchange));
    for (size_t i = 0; i < tables.size(); ++i) {
      wait(announced[i]);
      flights.push_back(coded(rows_of(tables[i], Account::kExchange), spec::codec_info("int8").bytes,
                              *rows_speed, Account::kExchange));
    }
    for (const FlightPtr& flight : flights) arrive(flight);
    finish_step();
  }

  // --- local-sgd, diloco ---
  void local_step(int64_t step) {
    const auto& settings = spec_.strategy;
    int64_t delay = settings.delay;
    if (settings.overlap_average && delay == 0) delay = settings.every / 2;
    const int64_t fragments = std::max<int64_t>(1, settings.fragments), apart = settings.every / fragments;
    const auto starting = [&](int64_t done) { return done >= 1 && done % apart == 0; };
    const int64_t done = step + 1;
    if (in_flight_.empty()) in_flight_.resize(static_cast<size_t>(delay) + 1);
    forward();
    int sums = -1, counted = -1;
    if (starting(done)) {
      sums = totals(apart - 1);
      counted = engine_.all_reduce(8, 8, group_);
      start(counted);
    }
    end_backward();
    if (sums >= 0) wait(sums);
    update();
    const auto slot_of = [&](int64_t number) { return static_cast<size_t>(number % (delay + 1)); };
    const auto launch = [&] {
      wait(counted);
      if (fragments_.empty()) fragments_ = cut_model(fragments);
      const Piece& piece = fragments_[static_cast<size_t>((done / apart - 1) % fragments)];
      // Weighted, and where differences are sent taken from the anchor: passes over the array.
      spend(Account::kExchange, passes(2, piece));
      std::vector<FlightPtr>& flights = in_flight_[slot_of(done)];
      if (settings.moments == "average") {
        for (int moment = 0; moment < (spec_.optim.name == "adamw" || spec_.optim.name == "lamb" ? 2 : 1);
             ++moment)
          flights.push_back(summed(piece));
      }
      flights.push_back(average(piece, Account::kExchange));
    };
    const auto finish = [&] {
      for (const FlightPtr& flight : std::exchange(in_flight_[slot_of(done - delay)], {})) {
        arrive(flight);
        spend(Account::kExchange, passes(spec_.strategy.name == "diloco" ? 4 : 1, flight->piece));
      }
    };
    if (delay == 0 && starting(done)) launch();
    if (done > delay) finish();
    if (delay > 0 && starting(done)) launch();
    work(&RankTime::other);
  }

  /// So many times an array read and written.
  double passes(int times, const Piece& piece) const {
    return times * 4.0 * static_cast<double>(piece.elements) / rate(local_.copy_gbyte);
  }

  // --- parameter-server ---
  struct Shard {
    double elements = 0;  ///< of the model
    double sent = 0;      ///< of the gradient, where rows are left out
    double runs = 0;      ///< stretches that it is sent in; 0: whole
  };

  std::vector<Shard> shards() const {
    const auto servers = static_cast<double>(spec_.servers());
    double elements = 0, sent = 0, runs = 1;
    for (const ParameterProfile& parameter : what_.profile.parameters) {
      const auto all_of_it = static_cast<double>(laid_out(parameter.elements()));
      elements += all_of_it;
      if (!spec_.strategy.sparse_rows || parameter.rows <= 0 || parameter.shape.size() != 2) {
        sent += all_of_it;
        continue;
      }
      const double rows = rows_read(parameter, what_.profile, what_.global_batch / ranks_);
      sent += rows * static_cast<double>(parameter.shape[1]);
      runs += rows;
    }
    const bool whole = 4 * sent > 3 * elements;
    return std::vector<Shard>(static_cast<size_t>(servers), {.elements = elements / servers,
                                                             .sent = (whole ? elements : sent) / servers,
                                                             .runs = whole ? 0 : runs / servers});
  }

  void write_server_steps(int64_t steps) {
    constexpr double kRequest = 64, kReply = 16;
    const std::vector<Shard> all_shards = shards();
    const bool together = spec_.staleness_bound() == 0;
    std::vector<std::vector<int>> threads;  // by server, then worker
    for (size_t server = 0; server < all_shards.size(); ++server) {
      threads.emplace_back();
      for (int worker = 0; worker < ranks_; ++worker)
        threads.back().push_back(engine_.actor(ranks_ + static_cast<int>(server)));
    }
    const auto put = [&](int actor, Action::Kind kind, int operation) {
      engine_.script(actor).push_back({.kind = kind, .operation = operation});
    };
    for (int64_t step = 0; step < steps; ++step) {
      forward();
      const int sums = together ? totals(0) : -1;
      end_backward();
      if (together) wait(sums);
      for (int worker = 0; worker < ranks_; ++worker) {
        const int mine = actors_[static_cast<size_t>(worker)];
        std::vector<int> sent, replies, values;
        for (size_t s = 0; s < all_shards.size(); ++s) {
          const Shard& shard = all_shards[s];
          const int server = ranks_ + static_cast<int>(s), thread = threads[s][static_cast<size_t>(worker)];
          std::vector<int> pushed{engine_.message(worker, server, kRequest)};
          if (shard.runs > 0) pushed.push_back(engine_.message(worker, server, 16 * shard.runs));
          pushed.push_back(engine_.message(worker, server, 4 * shard.sent));
          if (shard.runs > 0) {
            engine_.script(mine).push_back({.kind = Action::Kind::kCompute,
                                            .account = Account::kExchange,
                                            .seconds = 4 * shard.sent / rate(local_.copy_gbyte)});
          }
          for (const int message : pushed) {
            put(mine, Action::Kind::kStart, message);
            put(thread, Action::Kind::kStart, message);
            put(thread, Action::Kind::kWait, message);
            sent.push_back(message);
          }
          serve(thread, static_cast<int>(s), shard, together);
          replies.push_back(engine_.message(server, worker, kReply));
          values.push_back(engine_.message(server, worker, 4 * shard.elements));
          for (const int message : {replies.back(), values.back()}) {
            put(thread, Action::Kind::kStart, message);
            put(thread, Action::Kind::kWait, message);
          }
        }
        for (const int message : sent) put(mine, Action::Kind::kWait, message);
        for (const int message : replies) {
          put(mine, Action::Kind::kStart, message);
          put(mine, Action::Kind::kWait, message);
        }
        for (const int message : values) put(mine, Action::Kind::kStart, message);
        for (const int message : values) put(mine, Action::Kind::kWait, message);
      }
      work(&RankTime::other);
      mark();
    }
  }

  /// What a server does with a gradient: one at a time, or once all are there.
  void serve(int thread, int server, const Shard& shard, bool together) {
    std::vector<Action>& script = engine_.script(thread);
    const double copy = 4 * shard.elements / rate(local_.copy_gbyte);
    double update = 0, elements = static_cast<double>(what_.profile.elements());
    for (const RankTime& worker : what_.workers) update = std::max(update, worker.update);
    update *= shard.elements / std::max(1.0, elements);
    if (together) {
      script.push_back({.kind = Action::Kind::kMeet, .operation = server, .actors = ranks_});
      update += 4 * shard.elements * (ranks_ - 1) / rate(local_.reduce_gbyte);
    }
    script.push_back({.kind = Action::Kind::kLock, .operation = server});
    script.push_back({.kind = Action::Kind::kCompute, .seconds = together ? update / ranks_ : update});
    script.push_back({.kind = Action::Kind::kCompute, .seconds = copy});
    script.push_back({.kind = Action::Kind::kUnlock, .operation = server});
  }

  Engine& engine_;
  const StepsOf& what_;
  const spec::RunSpec& spec_;
  const LocalCosts& local_;
  int ranks_;
  int group_ = 0;
  int64_t step_ = 0, last_begun_ = -1;
  const spec::CodecInfo& codec_;
  CodecSpeed speed_{};
  std::vector<int> actors_{};
  std::deque<FlightPtr> to_turn_{};
  std::vector<std::vector<FlightPtr>> in_flight_{};  ///< by step, modulo the delay
  std::vector<Piece> fragments_{};                   ///< of the model, where workers average rarely
};

}  // namespace

int64_t period_of(const spec::RunSpec& spec) {
  const bool local = spec::strategy_info(spec.strategy.name).rhythm == spec::Rhythm::kLocal;
  return local ? std::max<int64_t>(1, spec.strategy.every) : 1;
}

void write_steps(Engine& engine, const StepsOf& what, int64_t steps) { Writer(engine, what).write(steps); }

double kept_bytes(const spec::RunSpec& spec, int64_t elements) {
  const spec::CodecInfo& codec = spec::codec_info(spec.codec.name);
  const bool feeds_back =
      spec.codec.error_feedback == "auto" ? codec.feeds_back : spec.codec.error_feedback == "true";
  double arrays = 0;
  // Of coded sums both the sender and the owner keep what was lost.
  if (feeds_back && spec.replicas() > 1) arrays += codec.packing == Packing::kLowRank ? 1 : 2;
  if (spec.strategy.name == "diloco") arrays += 3;  // the anchor, the momentum, what travels
  if (spec.strategy.name == "local-sgd" && (spec.strategy.delay > 0 || spec.strategy.overlap_average))
    arrays += 2;
  return 4 * arrays * static_cast<double>(elements);
}

}  // namespace syncopate::sim
