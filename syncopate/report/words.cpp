#include "syncopate/report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace syncopate::report {
namespace {

/// With a real minus, which is as wide as a plus.
std::string signed_text(double value, int digits) {
  const double rounded = std::round(value * std::pow(10, digits)) / std::pow(10, digits);
  return fmt::format("{}{:.{}f}", rounded < 0 ? "−" : "+", std::abs(rounded), digits);
}

}  // namespace

std::string grouped(double count) {
  if (!std::isfinite(count)) return "–";
  std::string text = fmt::format("{:.0f}", std::round(count));
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

std::string quality_text(const Measure& measure, double value) {
  if (!std::isfinite(value)) return "–";
  return measure.percent ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.2f}", value);
}

std::string difference_text(const Measure& measure, const Difference& difference) {
  if (!std::isfinite(difference.mean)) return "–";
  const double unit = measure.percent ? 100 : 1;
  std::string text = signed_text(unit * difference.mean, 2);
  if (std::isfinite(difference.half())) text += fmt::format(" ± {:.2f}", unit * difference.half());
  return measure.percent ? text + " points" : text;
}

std::string verdict_text(const Difference& difference) {
  if (difference.n == 0) return "not compared";
  if (difference.same) return "the same";
  if (!difference.decided) return "undecided";
  return *difference.better ? "better" : "worse";
}

std::string times_text(double factor) {
  if (!std::isfinite(factor)) return "–";
  return factor >= 10 ? fmt::format("{:.1f}x", factor) : fmt::format("{:.2f}x", factor);
}

std::string seeds_text(int64_t seeds) {
  return seeds == 1 ? "1 seed" : grouped(static_cast<double>(seeds)) + " seeds";
}

std::string seeds_named(const std::vector<std::string>& seeds) {
  return (seeds.size() == 1 ? "seed " : "seeds ") + joined(seeds, "and");
}

std::string stages_text(int64_t stages, std::string_view activation_codec) {
  std::string text = fmt::format("{} stages", stages);
  if (!activation_codec.empty() && activation_codec != "none") text += fmt::format(", {}", activation_codec);
  return text;
}

std::string workers_text(int64_t workers) {
  return workers == 1 ? "one worker" : fmt::format("{} workers", workers);
}

std::string network_text(const NetworkName& network) {
  return network.scale == 1 ? network.name : fmt::format("{} ÷ {:g}", network.name, network.scale);
}

std::string error_text(double error) {
  return std::isfinite(error) ? signed_text(100 * error, 1) + " %" : "–";
}

bool any_network(const Results& results) {
  return std::any_of(results.arms.begin(), results.arms.end(),
                     [](const ArmResult& arm) { return !arm.on.name.empty(); });
}

bool any_prediction(const Results& results) {
  return std::any_of(results.arms.begin(), results.arms.end(),
                     [](const ArmResult& arm) { return arm.predicted.has_value(); });
}

std::string prediction_text(const PredictionSummary& errors) {
  const std::string whose = errors.series == "run"         ? "made at the runs' ends from their own compute"
                            : errors.series == "simulated" ? "made by simulate"
                                                           : "made by advise before the runs";
  std::string text;
  if (errors.n == 1) {
    text = fmt::format("One prediction {} was off by {:.1f} %.", whose, 100 * errors.median);
  } else if (errors.n > 1) {
    text = fmt::format(
        "{} predictions {} were off by {:.1f} % (median) and {:.1f} % (90th percentile); {} of them by at "
        "most "
        "10 %, {} by at most 20 %.",
        errors.n, whose, 100 * errors.median, 100 * errors.p90, errors.within_10, errors.within_20);
  } else {
    return fmt::format("{} {} {} off by {:.1f} %{}, but held against {}: that says little.",
                       errors.left_out == 1 ? "One" : std::to_string(errors.left_out),
                       (errors.left_out == 1 ? "prediction " : "predictions ") + whose,
                       errors.left_out == 1 ? "was" : "were", 100 * errors.left_out_median,
                       errors.left_out == 1 ? "" : " (median)",
                       errors.left_out == 1 ? "a time that does not count" : "times that do not count");
  }
  if (errors.left_out > 0)
    text += fmt::format(" {} more {} held against a time that does not count.", errors.left_out,
                        errors.left_out == 1 ? "was" : "were");
  return text;
}

std::string joined(const std::vector<std::string>& names, const char* last) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? fmt::format(" {} ", last) : ", ";
    text += names[i];
  }
  return text;
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kFew = 4;
  if (names.size() <= kFew + 1) return joined(names, "and");
  std::vector<std::string> few(names.begin(), names.begin() + kFew);
  few.push_back(fmt::format("{} more", names.size() - kFew));
  return joined(few, "and");
}

std::vector<Remark> remarks_of(const Results& results) {
  std::vector<Remark> remarks;
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < results.arms.size(); ++i) {
    const ArmResult& arm = results.arms[i];
    const auto add = [&](const std::string& text) {
      const auto [found, fresh] = places.emplace(text, remarks.size());
      if (fresh) remarks.push_back({text, {}});
      std::vector<size_t>& arms = remarks[found->second].arms;
      if (arms.empty() || arms.back() != i) arms.push_back(i);
    };
    for (const Check& check : arm.checks) {
      if (!check.ok) add("left out: " + check.text);
    }
    for (const Flag& flag : arm.flags) {
      // Of one seed, or of a check that says the same, one sentence is enough.
      const bool told = std::any_of(arm.checks.begin(), arm.checks.end(),
                                    [&](const Check& check) { return !check.ok && check.text == flag.text; });
      if (!told && (flag.code != "undecided" || !arm.has_flag("one-seed"))) add(flag.text);
    }
  }
  return remarks;
}

}  // namespace syncopate::report
