#include "syncopate/run/records/recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "syncopate/base/quantile.h"
#include "syncopate/run/fault_injection.h"

namespace syncopate::run {
namespace {

/// What a step's time is spent on.
constexpr double record::StepRecord::*kParts[] = {
    &record::StepRecord::ms,          &record::StepRecord::compute_ms,   &record::StepRecord::forward_ms,
    &record::StepRecord::backward_ms, &record::StepRecord::optimizer_ms, &record::StepRecord::exchange_ms,
    &record::StepRecord::hidden_ms,   &record::StepRecord::data_ms};

}  // namespace

Recorder::Recorder(record::RunFolder folder, comm::Membership& membership, int rank, int64_t total_steps,
                   Progress::Style style, std::function<bool()> stop_requested,
                   std::optional<spec::Fault> fault)
    : folder_(std::move(folder)),
      membership_(membership),
      rank_(rank),
      progress_(rank_ == 0 ? style : Progress::Style::kNone, total_steps),
      stop_requested_(std::move(stop_requested)),
      fault_(std::move(fault)) {}

void Recorder::open(int64_t steps, int64_t own, int64_t evals) {
  loss_lines_ = std::make_unique<record::LineFile>(folder_.losses(rank_), own);
  if (!first()) return;
  step_lines_ = std::make_unique<record::LineFile>(folder_.steps(), steps);
  eval_lines_ = std::make_unique<record::LineFile>(folder_.evals(), evals);
}

void Recorder::begin() {
  open(0, 0, 0);
  if (writes_events_) events_.emplace(folder_.tensorboard(), std::nullopt);
}

void Recorder::phase(int64_t step, const char* phase) {
  membership_.status(step, phase);
  if (fault_ && fault_->rank == rank_) inject(*fault_, step, phase);
}

void Recorder::resumed(const train::ResumePoint& point) {
  const auto own = [&](int rank) {
    if (point.own.empty()) return point.recorded;
    return static_cast<size_t>(rank) < point.own.size() ? point.own[static_cast<size_t>(rank)] : 0;
  };
  open(point.recorded, own(rank_), point.evals);
  if (point.own.empty()) {
    // One that was not there, or whose file is lost: line k is step k's all the same.
    for (int64_t line = loss_lines_->kept(); line < point.recorded; ++line) loss_lines_->write("nan");
  }
  first_step_ = point.step;
  if (!first()) return;
  if (when_resumed_) when_resumed_();
  // What ranks that are no more wrote after the checkpoint did not happen.
  for (int rank = point.ranks; std::filesystem::exists(folder_.losses(rank)); ++rank)
    record::LineFile(folder_.losses(rank), own(rank));
  for (const std::string& line : record::read_lines(folder_.steps(), "record")) {
    steps_.push_back(record::step_from_json(nlohmann::ordered_json::parse(line)));
  }
  if (writes_events_) resume_events(point.step);
  progress_.say(fmt::format("resumed after step {}", point.step));
  for (const std::string& note : point.notes) progress_.say("note: " + note);
}

void Recorder::resume_events(int64_t step) {
  events_.emplace(folder_.tensorboard(), step);
  if (events_->had_events()) return;
  // They were not asked for when the run began: what is on record is told now.
  for (const record::StepRecord& record : steps_) events_->write(record.step, record::scalars_of(record));
  for (const std::string& line : record::read_lines(folder_.evals(), "record")) {
    const auto record = record::eval_from_json(nlohmann::ordered_json::parse(line));
    events_->write(record.step, record::scalars_of(record));
  }
}

void Recorder::updates(const std::vector<record::StepRecord>& records) {
  if (!first()) return;
  for (const record::StepRecord& record : records) {
    steps_.push_back(record);
    step_lines_->write(record::to_json(record).dump());
    if (events_) events_->write(record.step, record::scalars_of(record));
  }
}

record::StepRecord Recorder::own_step() const {
  if (own_steps_ < 2) return first_own_;
  record::StepRecord mean = own_;
  for (const auto part : kParts) mean.*part /= static_cast<double>(own_steps_ - 1);
  return mean;
}

void Recorder::update(const record::StepRecord& record, double own_loss) {
  if (own_steps_++ == 0) {
    first_own_ = record;
  } else {
    for (const auto part : kParts) own_.*part += record.*part;
  }
  // Seventeen digits: reading a loss back gives the same bits.
  loss_lines_->write(fmt::format("{:.17g}", own_loss));
  if (load_) load_->look();
  stop_requested();
  if (!first()) return;
  if (std::isfinite(record.loss)) {
    known_loss_ = record.loss;
    known_step_ = record.step;
  }
  // Where workers do not talk in every step, the last loss that is known is an earlier step's: say which.
  std::vector<std::string> details;
  if (known_step_ >= 0) {
    details.push_back(fmt::format("loss {:.4f}{}", known_loss_,
                                  known_step_ == record.step ? "" : fmt::format(" in step {}", known_step_)));
  }
  details.push_back(fmt::format("{:.0f} examples/s", static_cast<double>(record.examples) / record.ms * 1e3));
  progress_.update(record.step, first_step_, details);
}

void Recorder::eval(const record::EvalRecord& record) {
  if (load_) load_->look();
  if (first()) eval_lines_->write(record::to_json(record).dump());
  if (events_) events_->write(record.step, record::scalars_of(record));
}

void Recorder::epoch(const record::EpochRecord& record) {
  std::string line =
      fmt::format("epoch {} · loss {:.4f} · {:.1f} s", record.epoch, record.loss, record.seconds);
  if (record.eval) {
    line += fmt::format(" · {} loss {:.4f}", record.eval->split, record.eval->loss);
    for (const auto& [name, value] : record.eval->measures)
      line += fmt::format(" · {} {}", name, record::measure_for_people(name, value));
  }
  progress_.say(line);
}

void Recorder::saved(int64_t) {}

void Recorder::shares(int64_t step, const std::vector<int64_t>& shares) {
  progress_.say(
      fmt::format("after step {} the workers take {} examples a step", step, fmt::join(shares, ", ")));
}

bool Recorder::stop_requested() {
  const bool stop = stop_requested_();
  if (stop && !told_stop_) {
    told_stop_ = true;
    progress_.say("stopping after this step with a checkpoint; press Ctrl-C again to stop at once");
  }
  return stop;
}

parallel::Wishes Recorder::halt(int64_t step, const parallel::Wishes& mine) {
  if ((mine.bits() & ~wished_) != 0) {
    wished_ |= mine.bits();
    membership_.lifeline->wish(mine.bits());
  }
  const int64_t called = membership_.lifeline->begin(step);
  if (called != 0) wished_ = 0;
  return parallel::Wishes::of_bits(called);
}

void summarise(const std::vector<record::StepRecord>& steps, record::RunRecord& into) {
  if (steps.empty()) return;
  // The first step warms caches up and says nothing about the rest.
  const size_t skip = steps.size() > 1 ? 1 : 0;
  std::vector<double> ms;
  record::StepRecord sums;
  double seconds = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    seconds += steps[i].ms / 1e3;
    into.examples += steps[i].examples;
    if (i < skip) continue;
    ms.push_back(steps[i].ms);
    for (const auto each : kParts) sums.*each += steps[i].*each;
  }
  std::sort(ms.begin(), ms.end());
  // Where workers talk now and then, a median would leave out just what that costs.
  const auto silent = [](const record::StepRecord& step) { return step.bytes_sent == 0; };
  const bool rarely =
      std::any_of(steps.begin(), steps.end(), silent) && !std::all_of(steps.begin(), steps.end(), silent);
  const double typical = rarely ? sums.ms / static_cast<double>(ms.size()) : ms[ms.size() / 2];
  const auto part = [&](double sum) { return typical * sum / sums.ms; };
  into.steps = static_cast<int64_t>(steps.size());
  into.ms_per_iteration = typical;
  into.ms_p50 = quantile(ms, 0.5);
  into.ms_p95 = quantile(ms, 0.95);
  into.compute_ms = part(sums.compute_ms);
  // An earlier version, or a GPU, may have made some of the steps.
  const bool parts_known = std::all_of(steps.begin() + static_cast<std::ptrdiff_t>(skip), steps.end(),
                                       [](const record::StepRecord& step) {
                                         return step.forward_ms + step.backward_ms + step.optimizer_ms > 0;
                                       });
  into.forward_ms = parts_known ? part(sums.forward_ms) : 0;
  into.backward_ms = parts_known ? part(sums.backward_ms) : 0;
  into.optimizer_ms = parts_known ? part(sums.optimizer_ms) : 0;
  into.exchange_ms = part(sums.exchange_ms);
  into.hidden_ms = part(sums.hidden_ms);
  into.data_ms = part(sums.data_ms);
  into.train_seconds = seconds;
  into.examples_per_s = static_cast<double>(into.examples) / seconds;
  const size_t tail = std::max<size_t>(1, steps.size() / 10);
  double loss = 0, count = 0;
  for (size_t i = steps.size() - tail; i < steps.size(); ++i) {
    if (!std::isfinite(steps[i].loss)) continue;  // nothing in that step counted
    loss += steps[i].loss * static_cast<double>(steps[i].examples);
    count += static_cast<double>(steps[i].examples);
  }
  into.train_loss = count > 0 ? loss / count : std::nan("");
}

}  // namespace syncopate::run
