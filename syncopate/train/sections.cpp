// The trainer's loop where workers run free: sections of tickets, between which all hold the same parameters.
#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "syncopate/base/clock.h"
#include "syncopate/train/trainer.h"

namespace syncopate::train {

int64_t Trainer::section_end(int64_t first) const {
  int64_t end = options_.steps;
  for (const int64_t every : {parts_.loader.steps_per_epoch(), options_.eval_every, options_.save_every}) {
    if (every > 0) end = std::min(end, (first / every + 1) * every);
  }
  return end;
}

int64_t Trainer::run_section(parallel::FreeRunning& strategy, int64_t first) {
  const Stopwatch watch;
  const comm::Meter before = parts_.group.meter();
  const int64_t last = section_end(first);
  strategy.open(parts_.replica, first, last);
  bool time_is_up = false;
  std::vector<Step> mine;
  // A ticket is taken one update ahead, so that its data are prepared meanwhile.
  const auto take = [&] {
    const bool begun = first > 0 || !mine.empty();  // as where workers keep in step, one is always made
    time_is_up = parts_.group.rank() == 0 && begun && control_.time_is_up();
    const std::optional<int64_t> ticket = strategy.take(time_is_up || parts_.listener.stop_requested());
    if (ticket) parts_.loader.request(*ticket);
    return ticket;
  };
  std::optional<int64_t> ticket = take();
  while (ticket) {
    const std::optional<int64_t> next = take();
    mine.push_back(one_step(*ticket));
    parts_.listener.update(mine.back().record, mine.back().own_loss());
    ticket = next;
  }
  phase(first, "synchronisation");
  const int64_t done = first + strategy.close(parts_.replica);
  bytes_sent_ += static_cast<double>((parts_.group.meter() - before).total().bytes);
  const double seconds = watch.seconds();
  sums_.seconds += seconds;
  result_.seconds += seconds;
  epoch_ended_ = done > first && done % parts_.loader.steps_per_epoch() == 0;

  std::vector<record::StepRecord> records;
  for (const Step& step : updates_of_all(mine, time_is_up)) {
    sums_.epoch = step.epoch;
    sums_.loss += step.outcome.sum;
    sums_.count += step.outcome.count;
    records.push_back(step.record);
  }
  result_.interrupted = done < last && !time_is_up_;
  parts_.listener.updates(records);
  return done;
}

std::vector<Trainer::Step> Trainer::updates_of_all(const std::vector<Step>& mine, bool time_is_up) {
  constexpr int64_t kNumbers = 13;
  comm::Group& group = parts_.group;
  const auto own = static_cast<int64_t>(mine.size());
  std::vector<at::Tensor> counts, rows;
  for (int rank = 0; rank < group.size(); ++rank) counts.push_back(at::zeros({2}, at::kLong));
  group.all_gather(counts, at::tensor({own, int64_t{time_is_up}}, at::kLong)).wait();
  time_is_up_ = counts[0][1].item<int64_t>() > 0;
  int64_t most = 0;
  for (const at::Tensor& count : counts) most = std::max(most, count[0].item<int64_t>());
  const at::Tensor table = at::zeros({most, kNumbers}, at::kDouble);
  for (int64_t i = 0; i < own; ++i) {
    const Step& step = mine[static_cast<size_t>(i)];
    const record::StepRecord& r = step.record;
    const double numbers[kNumbers] = {static_cast<double>(r.step),
                                      r.loss,
                                      r.lr,
                                      static_cast<double>(r.examples),
                                      r.ms,
                                      r.compute_ms,
                                      r.exchange_ms,
                                      r.data_ms,
                                      r.bytes_sent,
                                      r.grad_norm,
                                      step.outcome.sum,
                                      step.outcome.count,
                                      static_cast<double>(step.epoch)};
    std::copy(std::begin(numbers), std::end(numbers), table.data_ptr<double>() + i * kNumbers);
  }
  for (int rank = 0; rank < group.size(); ++rank) rows.push_back(at::zeros_like(table));
  if (most > 0) group.all_gather(rows, table).wait();

  updates_.resize(static_cast<size_t>(group.size()));
  std::vector<Step> all;
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    const int64_t count = counts[rank][0].item<int64_t>();
    updates_[rank] += count;
    for (int64_t i = 0; i < count; ++i) {
      const double* const n = rows[rank].data_ptr<double>() + i * kNumbers;
      Step step;
      step.record = {.step = static_cast<int64_t>(n[0]),
                     .loss = n[1],
                     .lr = n[2],
                     .examples = static_cast<int64_t>(n[3]),
                     .ms = n[4],
                     .compute_ms = n[5],
                     .exchange_ms = n[6],
                     .data_ms = n[7],
                     .bytes_sent = n[8],
                     .grad_norm = n[9]};
      step.outcome.sum = n[10];
      step.outcome.count = n[11];
      step.epoch = static_cast<int64_t>(n[12]);
      all.push_back(step);
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Step& a, const Step& b) { return a.record.step < b.record.step; });
  return all;
}

}  // namespace syncopate::train
