#include <fmt/format.h>

#include <cmath>

#include "syncopate/base/text.h"
#include "syncopate/report/files/files.h"
#include "syncopate/report/plain_text.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

/// Text that a reader of Markdown shows as it is: no tag, link, cell or emphasis comes of it.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char letter : one_line(text)) {
    if (letter == '<') {
      safe += "&lt;";
    } else if (letter == '>') {
      safe += "&gt;";
    } else if (letter == '&') {
      safe += "&amp;";
    } else if (std::string_view("\\`*_{}[]#|~!@").find(letter) != std::string_view::npos) {
      safe += std::string("\\") + letter;
    } else {
      safe += letter;
    }
  }
  // What readers make links of without being asked.
  for (const auto& [link, plain] : {std::pair("://", "&#58;//"), std::pair("www.", "www&#46;")}) {
    for (size_t at = safe.find(link); at != std::string::npos; at = safe.find(link, at + 1))
      safe.replace(at, std::string_view(link).size(), plain);
  }
  return safe;
}

std::string quality_of(const Results& results, const ArmResult& arm) {
  const Estimate& estimate = arm.quality;
  if (!estimate.known()) return "–";
  std::string text = quality_text(arm.measure, estimate.mean);
  if (estimate.n > 1) text += fmt::format(" ± {:.2f}", (arm.measure.percent ? 100 : 1) * estimate.half());
  return arm.measure.name == results.measure.name ? text : escaped(arm.measure.label) + " " + text;
}

std::string difference_of(const Results& results, const ArmResult& arm) {
  if (arm.excluded) return "left out";
  if (!arm.difference) return arm.id == results.baseline ? "baseline" : "–";
  const Difference& difference = *arm.difference;
  if (difference.n == 0) return verdict_text(difference);
  return difference_text(arm.measure, difference) + ", " + verdict_text(difference);
}

std::string arms_table(const Results& results) {
  const bool network = any_network(results), predicted = any_prediction(results);
  std::string text = fmt::format(
      "| arm |{} workers | seeds | {} | difference | speed-up | ms |{} compute | exchange | sent per step | "
      "notes |\n",
      network ? " network |" : "", escaped(results.measure.name.empty() ? "quality" : results.measure.label),
      predicted ? " predicted ms | error |" : "");
  text += fmt::format("|---|{}--:|--:|--:|--:|--:|--:|{}--:|--:|--:|---|\n", network ? "---|" : "",
                      predicted ? "--:|--:|" : "");
  const auto milliseconds = [](double value) {
    return std::isfinite(value) ? fmt::format("{:.1f}", value) : std::string("–");
  };
  for (const ArmResult& arm : results.arms) {
    std::string codes;
    for (const Check& check : arm.checks) {
      if (!check.ok) codes += (codes.empty() ? "" : ", ") + fmt::format("**fails {}**", check.code);
    }
    for (const Flag& flag : arm.flags) codes += (codes.empty() ? "" : ", ") + flag.code;
    const std::string where =
        network ? fmt::format(" {} |", arm.on.name.empty() ? "–" : escaped(network_text(arm.on))) : "";
    const std::string expected =
        !predicted ? ""
                   : fmt::format(" {} | {} |", milliseconds(arm.predicted ? arm.predicted->ms : kUnknown),
                                 error_text(arm.predicted ? arm.predicted->error : kUnknown));
    text +=
        fmt::format("| {} |{} {} | {} | {} | {} | {} | {} |{} {} | {} | {} | {} |\n", escaped(arm.name),
                    where, arm.workers, arm.quality.n, arm.ms.known() ? quality_of(results, arm) : arm.state,
                    difference_of(results, arm), times_text(arm.speedup.mean), milliseconds(arm.ms.mean),
                    expected, milliseconds(arm.parts.compute), milliseconds(arm.parts.exchange),
                    std::isfinite(arm.bytes.per_step) ? bytes_for_people(arm.bytes.per_step) : "–", codes);
  }
  return text + "\n± is half of the 95 % interval of the mean over seeds.\n\n";
}

}  // namespace

std::string markdown_text(const Results& results) {
  std::string text = fmt::format("# {}\n\n", escaped(results.title.empty() ? "Comparison" : results.title));
  if (!results.advice.sentence.empty()) text += fmt::format("**{}**\n\n", escaped(results.advice.sentence));
  if (!results.advice.paragraph.empty()) text += escaped(results.advice.paragraph) + "\n\n";
  if (!results.arms.empty()) text += arms_table(results);
  for (const PredictionSummary& errors : results.prediction_errors)
    text += "- " + escaped(prediction_text(errors)) + "\n";
  for (const Remark& remark : remarks_of(results)) {
    std::vector<std::string> names;
    for (const size_t arm : remark.arms) names.push_back("**" + escaped(results.arms[arm].name) + "**");
    text += fmt::format("- {}: {}\n", some_of(names), escaped(remark.text));
  }
  for (const Note& note : results.notes) text += fmt::format("- {}\n", escaped(note.text));
  return text;
}

}  // namespace syncopate::report
