#include "syncopate/report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "syncopate/base/text.h"
#include "syncopate/report/plain_text.h"
#include "syncopate/report/table.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

constexpr size_t kColumns = 100, kLongestName = 32, kMostArms = 100;

std::string shortened(const std::string& name) {
  const std::string line = one_line(name);
  if (columns_of(line) <= kLongestName) return line;
  std::string start;
  for (size_t i = 0; i < line.size() && columns_of(start) < kLongestName; ++i) start += line[i];
  while (!start.empty() && (static_cast<unsigned char>(start.back()) & 0xC0) == 0x80) start.pop_back();
  if (!start.empty()) start.pop_back();
  return start + "…";
}

std::string with_interval(const Measure& measure, const Estimate& estimate) {
  if (!estimate.known()) return "–";
  const double unit = measure.percent ? 100 : 1;
  std::string text = fmt::format("{:.2f}", unit * estimate.mean);
  if (estimate.n > 1) text += fmt::format(" ± {:.2f}", unit * estimate.half());
  return text;
}

/// With the name of its measure where that is not the table's.
std::string quality_in(const Results& results, const ArmResult& arm) {
  const std::string text = with_interval(arm.measure, arm.quality);
  if (!arm.quality.known() || arm.measure.name == results.measure.name) return text;
  return fmt::format("{} {}{}", arm.measure.label, text, arm.measure.percent ? " %" : "");
}

std::string verdict_of(const Results& results, const ArmResult& arm) {
  if (arm.excluded) return "left out";
  if (!arm.difference) return arm.id == results.baseline ? "baseline" : "";
  const Difference& difference = *arm.difference;
  if (difference.n == 0) return verdict_text(difference);
  std::string text = difference_text(arm.measure, difference);
  if (const size_t unit = text.find(" points"); unit != std::string::npos) text.erase(unit);
  return text + " " + verdict_text(difference);
}

std::string parts_of(const ArmResult& arm) {
  if (!std::isfinite(arm.parts.compute)) return "";
  return fmt::format("{:.1f}+{:.1f}", arm.parts.compute, arm.parts.exchange);
}

std::string wrapped(const std::string& text, size_t indent = 0) {
  std::string all;
  for (const std::string& line : wrap(one_line(text), kColumns, indent)) all += line + "\n";
  return all;
}

/// What stands below the table, or alone where there is none.
std::string told_below(const Results& results) {
  std::string text;
  if (!results.notes.empty() || !results.prediction_errors.empty()) text += "\n";
  for (const PredictionSummary& errors : results.prediction_errors)
    text += wrapped(prediction_text(errors), 2);
  for (const Note& note : results.notes) text += wrapped((note.warning ? "warning: " : "") + note.text, 2);
  if (!results.advice.sentence.empty()) {
    text += "\n" + wrapped(results.advice.sentence);
    if (!results.advice.paragraph.empty()) text += wrapped(results.advice.paragraph);
  }
  return text;
}

}  // namespace

std::string terminal_table(const Results& results) {
  if (results.arms.empty()) return told_below(results);
  const std::string measure = results.measure.name.empty()
                                  ? "quality"
                                  : results.measure.label + (results.measure.percent ? " %" : "");
  const bool network = any_network(results), predicted = any_prediction(results);
  std::vector<std::string> head{"", "N", "n", measure, "difference", "speed", "ms", "comp+exch", "sent"};
  if (predicted) head.insert(head.begin() + 7, {"predicted", "error"});
  if (network) head.insert(head.begin() + 1, "network");
  head.emplace_back("notes");
  Table table(std::move(head));
  const std::vector<Remark> remarks = remarks_of(results);
  std::vector<std::string> marks(results.arms.size());
  for (size_t i = 0; i < remarks.size(); ++i) {
    for (const size_t arm : remarks[i].arms)
      marks[arm] += fmt::format("{}{}", marks[arm].empty() ? "" : " ", i + 1);
  }
  const size_t shown = std::min(results.arms.size(), kMostArms);
  for (size_t i = 0; i < shown; ++i) {
    const ArmResult& arm = results.arms[i];
    const bool finished = arm.ms.known();
    std::vector<std::string> row{
        shortened(arm.name),
        std::to_string(arm.workers),
        std::to_string(arm.quality.n),
        finished ? quality_in(results, arm) : arm.state,
        verdict_of(results, arm),
        finished ? times_text(arm.speedup.mean) : "",
        finished ? fmt::format("{:.1f}", arm.ms.mean) : "",
        parts_of(arm),
        std::isfinite(arm.bytes.per_step) ? bytes_for_people(arm.bytes.per_step) : ""};
    if (predicted) {
      row.insert(row.begin() + 7, {arm.predicted ? fmt::format("{:.1f}", arm.predicted->ms) : "",
                                   arm.predicted ? error_text(arm.predicted->error) : ""});
    }
    if (network) row.insert(row.begin() + 1, shortened(network_text(arm.on)));
    row.push_back(marks[i]);
    table.add(std::move(row));
  }
  std::string text = table.text();
  if (shown < results.arms.size())
    text +=
        fmt::format("… and {} more: the page and results.csv have them all\n", results.arms.size() - shown);
  text += wrapped(
      "N workers, n seeds, ± half of a 95 % interval; ms of a step, in it "
      "compute and exchange that was waited "
      "for; sent by a worker in a step.");
  if (!remarks.empty()) text += "\n";
  for (size_t i = 0; i < remarks.size() && remarks[i].arms.front() < shown; ++i) {
    std::vector<std::string> names;
    for (const size_t arm : remarks[i].arms) names.push_back(shortened(results.arms[arm].name));
    text += wrapped(fmt::format("[{}] {}: {}", i + 1, some_of(names), remarks[i].text), 4);
  }
  return text + told_below(results);
}

}  // namespace syncopate::report
