#include "syncopate/report/analyse.h"

#include <fmt/chrono.h>

#include <chrono>

#include "syncopate/base/version.h"
#include "syncopate/report/advice.h"
#include "syncopate/report/comparison.h"

namespace syncopate::report {
namespace {

Results analysed(const SweepData& sweep) {
  Comparison comparison{.sweep = sweep};
  make_runs_and_arms(comparison);
  choose_measure(comparison);
  choose_bases(comparison);
  fill_figures(comparison);
  fill_speed(comparison);
  check_fairness(comparison);
  find_collapses(comparison);
  compare_quality(comparison);
  raise_flags(comparison);
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
