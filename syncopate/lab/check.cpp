#include "syncopate/lab/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/quantile.h"
#include "syncopate/record/read_run.h"
#include "syncopate/sim/steps.h"
#include "syncopate/spec/effect.h"

namespace syncopate::lab {
namespace {

constexpr int64_t kCodecWarmup = 2;  // steps that a codec sums as they are

/// Steps before those that count.
int64_t warmup_of(const spec::RunSpec& spec) {
  return std::max<int64_t>(sim::period_of(spec), kCodecWarmup + 2);
}

}  // namespace

spec::RunSpec check_spec(const plan::AdviceRow& row, double seconds) {
  spec::RunSpec spec = row.spec;
  const int64_t period = sim::period_of(spec), warmup = warmup_of(spec);
  const double wanted = std::clamp(1e3 * seconds / row.predicted.ms, 6.0, 40.0);
  const int64_t periods = std::max<int64_t>(2, std::llround(wanted / static_cast<double>(period)));
  spec.train.steps = warmup + (period == 1 ? std::llround(wanted) : periods * period);
  spec.train.epochs = 0;
  spec.task.test_limit = 16;
  if (!spec::no_effect(spec, "codec.warmup")) spec.codec.warmup = kCodecWarmup;
  return spec;
}

plan::Checked measured_of(const spec::RunSpec& spec, const std::vector<record::StepRecord>& steps) {
  const bool free = spec.runs_free();
  const auto skipped = static_cast<size_t>(warmup_of(spec) * (free ? spec.comm.workers : 1));
  if (steps.size() <= skipped) throw DataError("too few steps were made to measure them");
  const std::vector<record::StepRecord> counted(steps.begin() + static_cast<std::ptrdiff_t>(skipped),
                                                steps.end());
  const bool mean = free || sim::period_of(spec) > 1;  // a median would leave out what is rare, or slow
  const auto typical = [&](double record::StepRecord::*part) {
    std::vector<double> values;
    double sum = 0;
    for (const record::StepRecord& step : counted) {
      values.push_back(step.*part);
      sum += step.*part;
    }
    return mean ? sum / static_cast<double>(counted.size()) : quantile(values, 0.5);
  };
  plan::Checked checked{.ms = typical(&record::StepRecord::ms),
                        .compute_ms = typical(&record::StepRecord::compute_ms),
                        .exchange_ms = typical(&record::StepRecord::exchange_ms)};
  checked.examples_per_s = static_cast<double>(spec.examples_per_step()) / (checked.ms / 1e3);
  return checked;
}

void check_row(plan::AdviceRow& row, const CheckOptions& options) {
  using namespace std::chrono_literals;
  spec::RunSpec spec = check_spec(row, options.seconds);
  std::string name = fmt::format("{}-{}w", spec.strategy.name, spec.comm.workers);
  if (spec.codec.name != "none") name = fmt::format("{}-{}", spec.codec.name, name);
  const std::filesystem::path folder = options.folder / name, log = options.folder / (name + ".log");
  // Of a check before this one, which left its log beside it. What else is there is somebody's.
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored)) {
    if (!std::filesystem::exists(log, ignored)) {
      row.failed =
          fmt::format("{} is there and no check made it; move it, or take another folder", folder.string());
      return;
    }
    remove_tree(folder);
  }
  const std::unique_ptr<Runner> own = options.runner == nullptr ? process_runner() : nullptr;
  Runner& runner = options.runner == nullptr ? *own : *options.runner;
  const auto run = runner.start({.spec = spec, .folder = folder, .log = log});
  std::optional<Ending> ending;
  for (bool stopped = false; !(ending = run->look());) {
    if (!stopped && options.stop_requested && options.stop_requested()) {
      stopped = true;
      run->stop();
    }
    std::this_thread::sleep_for(50ms);
  }
  if (ending->exit_code != 0) {
    row.failed = ending->message;
    return;
  }
  try {
    const record::Run read = record::read_run(folder);
    row.measured = measured_of(spec, read.steps);
    if (read.result) {
      row.measured->bytes_per_step = read.result->bytes_sent_per_step;
      row.measured->trustworthy = !read.result->network || read.result->network->trustworthy;
    }
  } catch (const DataError& error) {
    row.failed = error.what();
  }
}

}  // namespace syncopate::lab
