// Where workers run free: sections of numbered mini-batches (tickets), between which all hold the same
// parameters.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "syncopate/base/clock.h"
#include "syncopate/train/loop.h"
#include "syncopate/train/timed_step.h"

namespace syncopate::train {
namespace {

/// What ranks tell each other of an update.
struct UpdateRow {
  double step, loss, lr, examples;
  double ms, compute_ms, exchange_ms, data_ms;
  double forward_ms, backward_ms, optimizer_ms, hidden_ms;
  double bytes_sent, grad_norm;
  double loss_sum, count;  ///< what the mean loss is made of
  double epoch;

  static UpdateRow of(const TimedStep::Done& done) {
    const record::StepRecord& r = done.record;
    return {.step = static_cast<double>(r.step),
            .loss = r.loss,
            .lr = r.lr,
            .examples = static_cast<double>(r.examples),
            .ms = r.ms,
            .compute_ms = r.compute_ms,
            .exchange_ms = r.exchange_ms,
            .data_ms = r.data_ms,
            .forward_ms = r.forward_ms,
            .backward_ms = r.backward_ms,
            .optimizer_ms = r.optimizer_ms,
            .hidden_ms = r.hidden_ms,
            .bytes_sent = r.bytes_sent,
            .grad_norm = r.grad_norm,
            .loss_sum = done.result.sum,
            .count = done.result.count,
            .epoch = static_cast<double>(done.epoch)};
  }
  record::StepRecord record() const {
    return {.step = static_cast<int64_t>(step),
            .loss = loss,
            .lr = lr,
            .examples = static_cast<int64_t>(examples),
            .ms = ms,
            .compute_ms = compute_ms,
            .forward_ms = forward_ms,
            .backward_ms = backward_ms,
            .optimizer_ms = optimizer_ms,
            .exchange_ms = exchange_ms,
            .hidden_ms = hidden_ms,
            .data_ms = data_ms,
            .bytes_sent = bytes_sent,
            .grad_norm = grad_norm};
  }
};
static_assert(std::is_trivially_copyable_v<UpdateRow>, "rows travel as bytes");

/// What a rank says of a section before its rows: how many they are.
struct SectionHeader {
  int64_t rows = 0;
  int64_t wishes = 0;  ///< those of the clock, at rank 0
};

/// Every rank's values of a plain type, as many of each, by rank. Collective.
template <typename Plain>
std::vector<std::vector<Plain>> gather_all(comm::Group& group, const std::vector<Plain>& mine) {
  if (mine.empty()) return std::vector<std::vector<Plain>>(static_cast<size_t>(group.size()));  // so of all
  const auto bytes = static_cast<int64_t>(mine.size() * sizeof(Plain));
  const at::Tensor own = at::empty({bytes}, at::kByte);
  std::memcpy(own.data_ptr(), mine.data(), static_cast<size_t>(bytes));
  std::vector<at::Tensor> theirs;
  for (int rank = 0; rank < group.size(); ++rank) theirs.push_back(at::empty_like(own));
  group.all_gather(theirs, own).wait();
  std::vector<std::vector<Plain>> all;
  for (const at::Tensor& each : theirs) {
    all.emplace_back(mine.size());
    std::memcpy(all.back().data(), each.data_ptr(), static_cast<size_t>(bytes));
  }
  return all;
}

class FreeLoop : public Loop {
 public:
  FreeLoop(const LoopParts& parts, const LoopOptions& options, parallel::FreeRunning& strategy)
      : parts_(parts), options_(options), strategy_(strategy), steps_(parts, options) {}

  Advance advance(int64_t first) override {
    const Stopwatch watch;
    const comm::Meter before = parts_.meter.meter();
    const int64_t last = section_end(first);
    strategy_.open(parts_.replica, first, last);
    parallel::Wishes of_clock;
    std::vector<UpdateRow> mine;
    // A ticket is taken one update ahead, so that its data are prepared meanwhile.
    const auto take = [&] {
      const bool begun = first > 0 || !mine.empty();  // as where workers keep in step, one is always made
      const parallel::Wishes wished = parts_.wishes();
      if (parts_.mesh.world.rank() == 0 && begun)
        of_clock = {.time_is_up = wished.time_is_up, .save = wished.save};
      const std::optional<int64_t> ticket = strategy_.take(of_clock.any() || wished.stop);
      if (ticket) parts_.loader.request(*ticket);
      return ticket;
    };
    std::optional<int64_t> ticket = take();
    while (ticket) {
      const std::optional<int64_t> next = take();
      const TimedStep::Done done = steps_.make({.step = *ticket});
      mine.push_back(UpdateRow::of(done));
      parts_.listener.update(done.record, done.own_loss());
      ticket = next;
    }
    parts_.listener.phase(first, "synchronisation");
    Advance progress{.epoch = first / parts_.loader.steps_per_epoch()};  // of no updates at all
    progress.done = first + strategy_.close(parts_.replica);
    progress.sent = parts_.meter.meter() - before;
    progress.seconds = watch.seconds();
    progress.epoch_ended = progress.done > first && progress.done % parts_.loader.steps_per_epoch() == 0;
    std::vector<record::StepRecord> records;
    for (const UpdateRow& row : updates_of_all(std::move(mine), of_clock, progress)) {
      progress.epoch = static_cast<int64_t>(row.epoch);
      progress.loss += row.loss_sum;
      progress.count += row.count;
      records.push_back(row.record());
    }
    progress.wishes.stop = progress.done < last && !progress.wishes.any();
    parts_.listener.updates(records);
    return progress;
  }

  const std::vector<int64_t>& updates() const override { return updates_; }
  void restore_updates(std::vector<int64_t> updates) override {
    updates_ = std::move(updates);
    updates_.resize(std::max(updates_.size(), static_cast<size_t>(parts_.mesh.world.size())));
  }
  std::vector<std::vector<int64_t>> staleness() override { return strategy_.staleness(); }

 private:
  int64_t section_end(int64_t first) const {
    int64_t end = options_.steps;
    for (const int64_t every : {parts_.loader.steps_per_epoch(), options_.eval_every, options_.save_every}) {
      if (every > 0) end = std::min(end, (first / every + 1) * every);
    }
    return end;
  }

  /// In order; also takes rank 0's word of what its clock says. Collective.
  std::vector<UpdateRow> updates_of_all(std::vector<UpdateRow> mine, const parallel::Wishes& of_clock,
                                        Advance& progress) {
    comm::Group& group = parts_.mesh.world;
    const auto headers = gather_all<SectionHeader>(
        group, {{.rows = static_cast<int64_t>(mine.size()), .wishes = of_clock.bits()}});
    progress.wishes = parallel::Wishes::of_bits(headers[0][0].wishes);
    int64_t most = 0;
    for (const auto& header : headers) most = std::max(most, header[0].rows);
    mine.resize(static_cast<size_t>(most));  // all_gather takes as many of every rank
    const auto rows = gather_all(group, mine);
    updates_.resize(std::max(updates_.size(), rows.size()));
    std::vector<UpdateRow> all;
    for (size_t rank = 0; rank < rows.size(); ++rank) {
      const int64_t count = headers[rank][0].rows;
      updates_[rank] += count;
      all.insert(all.end(), rows[rank].begin(), rows[rank].begin() + count);
    }
    std::sort(all.begin(), all.end(), [](const UpdateRow& a, const UpdateRow& b) { return a.step < b.step; });
    return all;
  }

  LoopParts parts_;
  LoopOptions options_;
  parallel::FreeRunning& strategy_;
  TimedStep steps_;
  std::vector<int64_t> updates_;  ///< by rank
};

}  // namespace

MakeLoop free_loop(parallel::FreeRunning& strategy) {
  return [&strategy](const LoopParts& parts, const LoopOptions& options) {
    return std::make_unique<FreeLoop>(parts, options, strategy);
  };
}

}  // namespace syncopate::train
