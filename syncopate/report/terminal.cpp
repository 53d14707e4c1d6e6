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

constexpr size_t kColumns = 100, kLongestName = 32;

/// Sentences that several arms may share, each with a number.
class Footnotes {
 public:
  /// The number under which the arm's sentence stands.
  size_t add(const std::string& text, const std::string& arm) {
    auto found =
        std::find_if(notes_.begin(), notes_.end(), [&](const auto& note) { return note.text == text; });
    if (found == notes_.end()) found = notes_.insert(found, {text, {}});
    found->arms.push_back(arm);
    return static_cast<size_t>(found - notes_.begin()) + 1;
  }

  std::string text() const {
    std::string all;
    for (size_t i = 0; i < notes_.size(); ++i) {
      const std::string line =
          fmt::format("[{}] {}: {}", i + 1, joined(notes_[i].arms, "and"), notes_[i].text);
      for (const std::string& piece : wrap(line, kColumns, 4)) all += piece + "\n";
    }
    return all;
  }

 private:
  struct Note {
    std::string text;
    std::vector<std::string> arms;
  };
  std::vector<Note> notes_;
};

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

std::string verdict_of(const Results& results, const ArmResult& arm) {
  if (arm.excluded) return "left out";
  if (!arm.difference) return arm.id == results.baseline ? "baseline" : "";
  const Difference& difference = *arm.difference;
  std::string text = difference_text(results.measure, difference);
  if (const size_t unit = text.find(" points"); unit != std::string::npos) text.erase(unit);
  if (difference.n == 0) return "not compared";
  if (difference.same) return text + " the same";
  return text + (difference.decided ? *difference.better ? " better" : " worse" : " undecided");
}

std::string parts_of(const ArmResult& arm) {
  if (!std::isfinite(arm.parts.compute)) return "";
  return fmt::format("{:.1f}+{:.1f}", arm.parts.compute, arm.parts.exchange);
}

std::string paragraphs(const std::string& text) {
  std::string all;
  for (const std::string& line : wrap(one_line(text), kColumns)) all += line + "\n";
  return all;
}

}  // namespace

std::string terminal_table(const Results& results) {
  const std::string measure = results.measure.name.empty()
                                  ? "quality"
                                  : results.measure.label + (results.measure.percent ? " %" : "");
  Table table({"", "N", "n", measure, "difference", "speed-up", "ms", "comp.+exch.", "sent", "notes"});
  Footnotes notes;
  for (const ArmResult& arm : results.arms) {
    const std::string name = shortened(arm.name);
    std::vector<size_t> numbers;
    for (const Check& check : arm.checks) {
      if (!check.ok) numbers.push_back(notes.add(one_line("left out: " + check.text), name));
    }
    for (const Flag& flag : arm.flags) {
      // Of one seed, one sentence is enough.
      if (flag.code == "undecided" && arm.has_flag("one-seed")) continue;
      numbers.push_back(notes.add(one_line(flag.text), name));
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    std::string marks;
    for (const size_t number : numbers) marks += fmt::format("[{}]", number);
    const bool finished = arm.ms.known();
    table.add({name, std::to_string(arm.workers), std::to_string(arm.quality.n),
               finished ? with_interval(results.measure, arm.quality) : arm.state, verdict_of(results, arm),
               finished ? times_text(arm.speedup.mean) : "",
               finished ? fmt::format("{:.1f}", arm.ms.mean) : "", parts_of(arm),
               std::isfinite(arm.bytes.per_step) ? bytes_for_people(arm.bytes.per_step) : "", marks});
  }
  std::string text = table.text();
  for (const std::string& line : wrap("N workers, n seeds, ± half of a 95 % interval; ms of a step, in it "
                                      "compute and exchange that was waited "
                                      "for; sent by a worker in a step.",
                                      kColumns))
    text += line + "\n";
  const std::string told = notes.text();
  if (!told.empty()) text += "\n" + told;
  std::string remarks;
  for (const Note& note : results.notes) {
    for (const std::string& line : wrap(one_line((note.warning ? "warning: " : "") + note.text), kColumns, 2))
      remarks += line + "\n";
  }
  if (!remarks.empty()) text += "\n" + remarks;
  if (!results.advice.sentence.empty()) {
    text += "\n" + paragraphs(results.advice.sentence);
    if (!results.advice.paragraph.empty()) text += paragraphs(results.advice.paragraph);
  }
  return text;
}

}  // namespace syncopate::report
