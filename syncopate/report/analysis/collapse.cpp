// Seeds that did not learn what the others did.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

/// Beyond this many robust standard deviations below its arm's median a seed is no bad luck.
constexpr double kFar = 6;

struct Judge {
  const Comparison& of;
  /// Medians of all finished runs of a group, and of how far they lie from their own arm's median.
  std::vector<double> middle{}, spread{};

  explicit Judge(const Comparison& comparison) : of(comparison) {
    int64_t groups = 0;
    for (const ArmResult& arm : of.results.arms) groups = std::max(groups, arm.group + 1);
    for (int64_t group = 0; group < groups; ++group) {
      std::vector<double> all, distances;
      for (const ArmResult& arm : of.results.arms) {
        if (arm.group != group) continue;
        const double center = median(arm.quality.values);
        for (const double value : arm.quality.values) {
          all.push_back(value);
          if (arm.quality.n > 2) distances.push_back(std::abs(value - center));
        }
      }
      middle.push_back(median(all));
      spread.push_back(1.4826 * median(distances));  // of a normal distribution, its standard deviation
    }
  }

  /// Why the seed counts as collapsed; empty: it does not.
  std::string reason(const ArmResult& arm, const RunData& run, double quality) const {
    const RunFiles& files = *run.files;
    if (files.one_answer) return "nearly every test example gets the same class";
    if (!std::isfinite(quality)) return "";
    const Measure& measure = arm.measure;
    const auto group = static_cast<size_t>(arm.group);
    // No better than the most frequent class, where others are far better.
    if (measure.name == "accuracy" && std::isfinite(files.majority)) {
      const double gained = quality - files.majority, usual = middle[group] - files.majority;
      const double tested = files.record->eval ? static_cast<double>(files.record->eval->examples) : 0;
      const double luck = 3 * std::sqrt(files.majority * (1 - files.majority) / std::max(1.0, tested));
      if (usual > std::max(0.1, luck) && gained < 0.1 * usual) {
        return fmt::format("no better than the most frequent class ({}), while {} is usual",
                           quality_text(measure, files.majority), quality_text(measure, middle[group]));
      }
    }
    // Far below the other seeds of the same arm, by a spread that all arms share: three seeds that happen to
    // agree must not make a fourth look odd.
    if (arm.quality.n < 3) return "";
    const double center = median(arm.quality.values);
    const double floor = measure.name == "accuracy" && std::isfinite(files.majority) ? files.majority : 0;
    const double lost = measure.higher_is_better ? center - quality : quality - center;
    const double scale = measure.higher_is_better ? std::abs(center - floor) : std::abs(center);
    const double usual = std::max(std::fmax(spread[group], 0), 0.02 * scale);
    if (lost > kFar * usual && lost > 0.25 * scale)
      return fmt::format("far from its other seeds ({} against {})", quality_text(measure, quality),
                         quality_text(measure, center));
    return "";
  }
};

}  // namespace

void find_collapses(Comparison& of) {
  const Judge judge(of);
  for (size_t i = 0; i < of.results.arms.size(); ++i) {
    ArmResult& arm = of.results.arms[i];
    std::vector<std::pair<std::string, std::vector<std::string>>> seeds;  // by reason
    for (size_t k = 0; k < of.runs[i].size(); ++k) {
      const RunData& run = *of.runs[i][k];
      if (!run.done()) continue;
      const std::string reason = judge.reason(arm, run, arm.quality.values[k]);
      if (reason.empty()) continue;
      of.results.runs[of.places[i][k]].collapsed = true;
      auto found =
          std::find_if(seeds.begin(), seeds.end(), [&](const auto& each) { return each.first == reason; });
      if (found == seeds.end()) found = seeds.insert(found, {reason, {}});
      found->second.push_back(std::to_string(run.seed));
    }
    std::string told;
    for (const auto& [reason, which] : seeds) {
      told += fmt::format("{}{} {} collapsed: {}", told.empty() ? "" : "; ",
                          which.size() == 1 ? "seed" : "seeds", joined(which, "and"), reason);
    }
    if (!told.empty()) arm.flags.push_back({"collapsed", told});
  }
}

}  // namespace syncopate::report
