#include "syncopate/report/analyse.h"

#include <fmt/chrono.h>

#include <chrono>

#include "syncopate/base/version.h"
#include "syncopate/report/advice/advice.h"
#include "syncopate/report/analysis/comparison.h"

namespace syncopate::report {
namespace {

/// What arms are compared with must itself be fair: where it is not, another one is found.
void find_fair_bases(Comparison& of) {
  constexpr int kMostRounds = 8;
  of.barred.assign(of.results.arms.size(), false);
  for (int round = 0; round < kMostRounds; ++round) {
    choose_bases(of);
    check_fairness(of);
    bool found = false;
    for (const auto* bases : {&of.quality_base, &of.speed_base}) {
      for (const size_t base : *bases) {
        if (base == Comparison::kNone || of.barred[base] || !of.results.arms[base].excluded) continue;
        of.barred[base] = found = true;
      }
    }
    if (!found) return;
  }
}

Results analysed(const SweepData& sweep) {
  Comparison comparison{.sweep = sweep};
  make_runs_and_arms(comparison);
  place_arms(comparison);
  choose_measure(comparison);
  fill_figures(comparison);
  find_fair_bases(comparison);
  note_bases(comparison);
  note_networks(comparison);
  fill_speed(comparison);
  find_collapses(comparison);
  compare_quality(comparison);
  flag_timing(comparison);
  say_speed(comparison);
  raise_flags(comparison);
  find_predictions(comparison);
  find_front(comparison);
  fill_over_time(comparison);
  find_scaling(comparison);
  Results& results = comparison.results;
  results.made =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  results.version = program_version();
  results.commit = program_commit();
  results.advice = advise(results);
  return std::move(results);
}

}  // namespace

struct Reader::Held {
  SweepReader reader;
  Results results{};
};

Reader::Reader(std::filesystem::path folder) : held_(new Held{SweepReader(std::move(folder))}) {}
Reader::~Reader() = default;

bool Reader::refresh() {
  if (!held_->reader.refresh()) return false;
  held_->results = analysed(held_->reader.data());
  return true;
}

const Results& Reader::results() const { return held_->results; }

Results analyse(const std::filesystem::path& folder) {
  Reader reader(folder);
  reader.refresh();
  return reader.results();
}

}  // namespace syncopate::report
