#include "syncopate/report/advice/paragraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "syncopate/report/advice/evidence.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

/// Sentences, one after the other.
struct Text {
  std::string all{};

  template <typename... Args>
  void say(fmt::format_string<Args...> sentence, Args&&... args) {
    all += (all.empty() ? "" : " ") + fmt::format(sentence, std::forward<Args>(args)...);
  }
};

/// Names of the arms that have the flag and are not left out.
std::vector<std::string> flagged(const ArmGroup& group, const char* code) {
  std::vector<std::string> names;
  for (const ArmResult* arm : group.all()) {
    if (!arm->excluded && arm->kind != "control" && arm->has_flag(code)) names.push_back(arm->name);
  }
  return names;
}

void tell_what_was_compared(const ArmGroup& group, Text& text) {
  int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
  for (const ArmResult* arm : group.compared()) {
    least = std::min(least, arm->quality.n);
    most = std::max(most, arm->quality.n);
  }
  const size_t others = group.compared().size() - 1;
  text.say(
      "{} {} compared with {}, {}.", others, others == 1 ? "arm was" : "arms were", group.base()->name,
      least == most ? seeds_text(most) + " each" : fmt::format("{} to {} each", least, seeds_text(most)));
}

/// What is remarkable about an arm, beside the one that was chosen, if any was.
void tell_arm(const Claims& claims, const ArmResult& arm, const ArmResult* chosen, Text& text) {
  const std::string times = times_text(arm.speedup.mean), evidence = evidence_text(claims.group(), arm);
  const bool beyond = chosen != nullptr && claims.faster(arm) && arm.speedup.mean > chosen->speedup.mean;
  if (beyond && claims.is_worse(arm)) {
    text.say("{} is faster still ({}) but loses quality ({}).", arm.name, times, evidence);
  } else if (beyond && !claims.keeps_quality(arm)) {
    text.say("{} is faster still ({}), but whether it loses quality is open ({}); {}.", arm.name, times,
             evidence, needed_text(claims, arm));
  } else if (claims.is_better(arm)) {
    text.say("{} is better in quality ({}) and {}.", arm.name, evidence, arm.words);
  } else if (claims.is_worse(arm) && arm.has_flag("slower")) {
    text.say("{} is both slower and worse ({}).", arm.name, evidence);
  } else if (claims.is_worse(arm) && claims.perhaps_faster(arm)) {
    text.say("{} is worse ({}), and {}.", arm.name, evidence, arm.words);
  }
}

/// The arms that the verdict does not name.
void tell_others(const Claims& claims, const Advice& verdict, Text& text) {
  const ArmResult* chosen = claims.group().results().arm(verdict.arm);
  const std::vector<std::string>& rivals = verdict.rivals;
  size_t told = 0;
  for (const ArmResult* arm : claims.group().compared()) {
    const bool rival = std::find(rivals.begin(), rivals.end(), arm->id) != rivals.end();
    if (arm == claims.group().base() || arm == chosen || rival || !arm->to_base || arm->to_base->n < 2)
      continue;
    if (told == kMostTold) break;
    const size_t before = text.all.size();
    tell_arm(claims, *arm, chosen, text);
    if (text.all.size() > before) ++told;
  }
}

void tell_chance(const Claims& claims, Text& text) {
  if (claims.seemingly_better().empty()) return;
  std::vector<std::string> names;
  for (const ArmResult* arm : claims.seemingly_better()) names.push_back(arm->name);
  text.say("By its own interval better, but not beyond what chance does among {} arms: {}.",
           claims.group().compared().size() - 1, some_of(names));
}

/// Differences to other arms than the base, as to controls.
void tell_other_differences(const ArmGroup& group, Text& text) {
  size_t told = 0;
  for (const ArmResult* arm : group.compared()) {
    const ArmResult* against = arm->difference ? group.results().arm(arm->difference->against) : nullptr;
    if (against == nullptr || against == group.base() || arm == group.base() || arm->difference->n < 2)
      continue;
    if (told++ == kMostTold) break;
    text.say("Against {}, {} has a difference of {} ({}).", against->name, arm->name,
             difference_text(group.measure(), *arm->difference), verdict_text(*arm->difference));
  }
}

void tell_left_out(const ArmGroup& group, Text& text) {
  size_t left_out = 0;
  for (const ArmResult* arm : group.all()) {
    if (!arm->excluded || ++left_out > kMostTold) continue;
    const auto failing =
        std::find_if(arm->checks.begin(), arm->checks.end(), [](const Check& check) { return !check.ok; });
    text.say("{} is left out: {}.", arm->name, failing->text);
  }
  if (left_out > kMostTold) text.say("{} more are left out.", left_out - kMostTold);
}

/// Seeds that did not come to an end.
void tell_losses(const ArmGroup& group, Text& text) {
  size_t told = 0;
  for (const ArmResult* arm : group.all()) {
    if (arm->kind == "control") continue;
    const auto tell = [&](const std::vector<std::string>& seeds, const char* what) {
      if (seeds.empty() || ++told > kMostTold) return;
      if (seeds.size() == arm->runs.size()) {
        text.say("{} of {} {}.", seeds.size() == 1 ? "The only seed" : "All seeds", arm->name, what);
      } else {
        text.say("{} {} of {} {}: the others alone are no fair mean of it.",
                 seeds.size() == 1 ? "Seed" : "Seeds", joined(seeds, "and"), arm->name, what);
      }
    };
    tell(group.diverged(*arm), "diverged");
    tell(group.failed(*arm), "failed");
  }
  if (told > kMostTold) text.say("So did seeds of more arms: see the table.");
}

}  // namespace

std::string paragraph_of(const Claims& claims, const Advice& verdict) {
  const ArmGroup& group = claims.group();
  Text text;
  tell_what_was_compared(group, text);
  tell_others(claims, verdict, text);
  tell_chance(claims, text);
  tell_other_differences(group, text);
  if (const auto names = flagged(group, "slower"); !names.empty())
    text.say("Slower than {}: {}.", group.slow_name(), some_of(names));
  if (const std::string more = caveats_of(group); !more.empty()) text.say("{}", more);
  return text.all;
}

std::string caveats_of(const ArmGroup& group) {
  Text text;
  tell_left_out(group, text);
  tell_losses(group, text);
  const auto tell = [&](const char* code, const char* before, const char* after) {
    if (const auto names = flagged(group, code); !names.empty())
      text.say("{} {}{}", before, some_of(names), after);
  };
  tell("collapsed", "Seeds collapsed in", ": look at them before you trust a mean.");
  tell("rate-at-edge", "The best rate lies on the edge of what was tried in", ".");
  tell("not-tuned", "The rate was searched for others but not for", ".");
  tell("busy", "The machine was busy while", " ran: repeat on a quiet one before you trust speeds.");
  tell("late", "The machine was too busy to emulate the network of", ": those speeds do not count.");
  tell("side-by-side", "Speeds are open, because other runs ran at the same time, of", ".");
  tell("other-version", "Speeds do not count, because another version of the program made them, of", ".");
  return text.all;
}

}  // namespace syncopate::report
