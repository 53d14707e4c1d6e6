#include "syncopate/report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

using Arms = std::vector<const ArmResult*>;

constexpr size_t kMostTold = 4;  // a paragraph, not a list: the table has the rest

/// Sentences, one after the other.
struct Text {
  std::string all{};

  template <typename... Args>
  void say(fmt::format_string<Args...> sentence, Args&&... args) {
    all += (all.empty() ? "" : " ") + fmt::format(sentence, std::forward<Args>(args)...);
  }
};

/// Advice about arms that learn the same from the same data.
class GroupAdvice {
 public:
  GroupAdvice(const Results& results, int64_t group) : results_(results) {
    for (const ArmResult& arm : results.arms) {
      if (arm.group != group) continue;
      all_.push_back(&arm);
      if (!arm.excluded && arm.kind != "control" && arm.quality.known() && arm.speedup.known())
        arms_.push_back(&arm);
    }
    // The baseline is the one without a difference that others are compared with.
    for (const ArmResult* arm : arms_) {
      if (arm->difference) continue;
      if (base_ == nullptr || arm->id == results.baseline) base_ = arm;
    }
    if (base_ != nullptr) {
      const ArmResult* measured = results.arm(base_->speed_against);
      slow_ = measured == nullptr ? base_ : measured;
      stolen_ = stolen();
    }
  }

  Advice give() {
    if (base_ == nullptr || arms_.size() < 2) return nothing();
    whom_ = slow_->workers == 1 ? "one worker" : slow_->name;
    Advice advice = decide();
    advice.paragraph = paragraph(advice);
    return advice;
  }

 private:
  Advice nothing() const {
    Advice advice{.verdict = "nothing"};
    if (arms_.empty()) {
      const bool going = std::any_of(all_.begin(), all_.end(), [](const ArmResult* arm) {
        return arm->state == "running" || arm->state == "planned";
      });
      advice.sentence = going ? "No run has finished yet." : "No run finished that could be compared.";
    } else if (base_ == nullptr) {
      advice.sentence = "There is no baseline that finished and passed its checks, so nothing can be said.";
    } else {
      advice.sentence = fmt::format(
          "Only {} has finished and passed its checks: there is nothing to compare it with.", arms_[0]->name);
    }
    advice.paragraph = caveats();
    return advice;
  }

  static bool timed_fairly(const ArmResult& arm) {
    return !arm.has_flag("side-by-side") && !arm.has_flag("other-version") && !arm.has_flag("other-host");
  }

  /// The share of the baseline's cores that others kept busy: on a quiet machine it could have been as much
  /// faster.
  double stolen() const {
    if (!slow_->has_flag("busy")) return 0;
    double cores = 0;
    for (const RunResult& run : results_.runs) {
      if (run.arm == slow_->id) cores = std::max(cores, static_cast<double>(run.cores));
    }
    return cores > 0 ? std::min(1.0, slow_->outside_load / cores) : 1;
  }

  /// Whether its speed-up stands, whatever others did on the machine.
  bool faster(const ArmResult& arm) const {
    if (&arm == slow_ || !timed_fairly(arm) || !timed_fairly(*slow_)) return false;
    // One run says something of speed, if the step is large: thousands of steps are behind it.
    const double least = arm.speedup.n > 1 ? arm.speedup.low : arm.speedup.mean / 1.1;
    return least * (1 - stolen_) > 1;
  }

  /// Whether it was faster, but not so that one could claim it.
  bool perhaps_faster(const ArmResult& arm) const {
    return &arm != slow_ && !faster(arm) && arm.speedup.mean > 1.02;
  }

  Advice speed_is_open(const ArmResult& arm) const {
    std::string reason;
    if (!timed_fairly(arm) || !timed_fairly(*slow_)) {
      reason = "the timing of these runs does not count";
    } else if (stolen_ > 0) {
      reason = fmt::format("the machine was busy while {} ran", slow_->name);
    } else {
      reason = fmt::format("{} leave anything from {} to {} possible", seeds_text(arm.speedup.n),
                           times_text(std::max(0.0, arm.speedup.low)), times_text(arm.speedup.high));
      if (arm.speedup.n < 2) reason = "one run does not tell so small a step from chance";
    }
    return {.verdict = "undecided",
            .sentence = fmt::format("Undecided between {} and {}: {} was {} as fast as {}, but {}.", arm.name,
                                    base_->name, arm.name, times_text(arm.speedup.mean), whom_, reason),
            .arm = "",
            .rivals = {arm.id, base_->id}};
  }

  double loss_limit() const { return tolerated_loss(results_.measure, base_->quality.mean); }

  /// The end of the interval on the side of a loss, as a loss.
  double worst_loss(const Difference& difference) const {
    return results_.measure.higher_is_better ? -difference.low : difference.high;
  }

  bool keeps_quality(const ArmResult& arm) const {
    if (!arm.difference || arm.difference->n < 2) return false;
    return arm.difference->same || arm.difference->better.value_or(false) ||
           worst_loss(*arm.difference) <= loss_limit();
  }
  bool is_worse(const ArmResult& arm) const {
    return arm.difference && arm.difference->decided && !*arm.difference->better;
  }
  bool is_better(const ArmResult& arm) const {
    return arm.difference && arm.difference->decided && *arm.difference->better;
  }

  const ArmResult* fastest(const Arms& arms) const {
    return *std::max_element(arms.begin(), arms.end(), [](const ArmResult* a, const ArmResult* b) {
      return a->speedup.mean < b->speedup.mean;
    });
  }

  template <typename Holds>
  Arms where(const Holds& holds) const {
    Arms found;
    for (const ArmResult* arm : arms_) {
      if (arm != base_ && holds(*arm)) found.push_back(arm);
    }
    return found;
  }

  std::string evidence(const ArmResult& arm) const {
    const Difference& d = *arm.difference;
    const ArmResult* against = results_.arm(d.against);
    return fmt::format("difference {}{}, {}", difference_text(results_.measure, d),
                       against == nullptr || against == base_ ? "" : " from " + against->name,
                       seeds_text(d.n));
  }

  std::string needed(const ArmResult& arm) const {
    const Difference& d = *arm.difference;
    if (d.seeds_needed) {
      const int64_t more = *d.seeds_needed - d.n;
      return fmt::format("about {} more would tell", seeds_text(std::max<int64_t>(1, more)));
    }
    return "no number of seeds that one would run could tell them apart in quality";
  }

  Advice decide() const {
    const bool few_seeds = std::all_of(arms_.begin(), arms_.end(), [&](const ArmResult* arm) {
      return arm == base_ || !arm->difference || arm->difference->n < 2;
    });
    const Arms quick = where([&](const ArmResult& arm) { return faster(arm); });
    if (few_seeds) return by_speed_alone(quick);
    const Arms good = where([&](const ArmResult& arm) { return faster(arm) && keeps_quality(arm); });
    if (!good.empty()) return choose(good);
    const Arms open = where([&](const ArmResult& arm) { return faster(arm) && !is_worse(arm); });
    if (!open.empty()) return undecided(*fastest(open));
    const Arms better = where([&](const ArmResult& arm) { return is_better(arm); });
    if (!better.empty()) return better_but_not_faster(better);
    const Arms perhaps = where([&](const ArmResult& arm) { return perhaps_faster(arm) && !is_worse(arm); });
    if (!perhaps.empty()) return speed_is_open(*fastest(perhaps));
    return none(quick);
  }

  Advice by_speed_alone(const Arms& quick) const {
    if (quick.empty()) {
      const Arms perhaps = where([&](const ArmResult& arm) { return perhaps_faster(arm); });
      if (!perhaps.empty()) {
        Advice open = speed_is_open(*fastest(perhaps));
        open.sentence += " One seed decides nothing about quality.";
        return open;
      }
      return {.verdict = "none",
              .sentence = fmt::format(
                  "None of these was faster than {} on this machine; one seed decides nothing about quality.",
                  whom_)};
    }
    const ArmResult* arm = fastest(quick);
    return {
        .verdict = "undecided",
        .sentence = fmt::format("One seed decides nothing about quality; by speed alone {} comes first: {}.",
                                arm->name, arm->words),
        .rivals = ids(quick)};
  }

  Advice choose(const Arms& good) const {
    const ArmResult* winner = fastest(good);
    Arms rivals;
    for (const ArmResult* arm : good) {
      if (arm != winner && !told_apart(*winner, *arm)) rivals.push_back(arm);
    }
    if (!rivals.empty()) {
      std::vector<std::string> names{winner->name};
      for (const ArmResult* arm : rivals) names.push_back(arm->name);
      return {.verdict = "undecided",
              .sentence = fmt::format(
                  "Undecided between {}: none loses quality, and their speeds ({} and {}) lie too close "
                  "for {}.",
                  some_of(names), times_text(winner->speedup.mean), times_text(fastest(rivals)->speedup.mean),
                  seeds_text(winner->speedup.n)),
              .arm = winner->id,
              .rivals = ids(rivals)};
    }
    const char* quality = is_better(*winner)         ? "and better"
                          : winner->difference->same ? "with the same quality"
                                                     : "nothing lost";
    return {.verdict = "best",
            .sentence = fmt::format("{} is the best choice here: {}, {} ({}).", winner->name, winner->words,
                                    quality, evidence(*winner)),
            .arm = winner->id};
  }

  Advice undecided(const ArmResult& arm) const {
    return {
        .verdict = "undecided",
        .sentence =
            arm.difference && arm.difference->n > 1
                ? fmt::format(
                      "Undecided between {} and {}: {} is {}, but whether it loses quality is open ({}); {}.",
                      arm.name, base_->name, arm.name, arm.words, evidence(arm), needed(arm))
                : fmt::format(
                      "Undecided between {} and {}: {} is {}, but one seed decides nothing about quality.",
                      arm.name, base_->name, arm.name, arm.words),
        .arm = "",
        .rivals = {arm.id, base_->id}};
  }

  Advice better_but_not_faster(const Arms& better) const {
    const ArmResult* arm =
        *std::max_element(better.begin(), better.end(), [&](const ArmResult* a, const ArmResult* b) {
          const double sign = results_.measure.higher_is_better ? 1 : -1;
          return sign * a->quality.mean < sign * b->quality.mean;
        });
    return {.verdict = "best",
            .sentence = fmt::format("{} is the best choice here for quality ({}); it is {}.", arm->name,
                                    evidence(*arm), arm == slow_ ? "no faster" : arm->words),
            .arm = arm->id};
  }

  Advice none(const Arms& quick) const {
    if (quick.empty())
      return {.verdict = "none", .sentence = fmt::format("None of these beats {} on this machine.", whom_)};
    const ArmResult* arm = fastest(quick);
    return {.verdict = "none",
            .sentence = fmt::format(
                "None of these is faster than {} without losing quality: {} is {}, but worse ({}).", whom_,
                arm->name, arm->words, evidence(*arm))};
  }

  /// Whether the seeds tell the speeds of two arms apart.
  bool told_apart(const ArmResult& a, const ArmResult& b) const {
    std::map<int64_t, double> ours;
    const auto each = [&](const ArmResult& arm, auto use) {
      for (const RunResult& run : results_.runs) {
        if (run.arm == arm.id && std::isfinite(run.speedup)) use(run);
      }
    };
    each(a, [&](const RunResult& run) { ours[run.seed] = run.speedup; });
    std::vector<double> differences;
    each(b, [&](const RunResult& run) {
      if (const auto found = ours.find(run.seed); found != ours.end())
        differences.push_back(found->second - run.speedup);
    });
    if (differences.size() < 2) return std::abs(a.speedup.mean - b.speedup.mean) > 0.1 * b.speedup.mean;
    return paired_difference(differences, true).decided;
  }

  static std::vector<std::string> ids(const Arms& arms) {
    std::vector<std::string> list;
    for (const ArmResult* arm : arms) list.push_back(arm->id);
    return list;
  }

  std::string paragraph(const Advice& advice) const {
    Text text;
    int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
    for (const ArmResult* arm : arms_) {
      least = std::min(least, arm->quality.n);
      most = std::max(most, arm->quality.n);
    }
    text.say(
        "{} {} compared with {}, {}.", arms_.size() - 1, arms_.size() == 2 ? "arm was" : "arms were",
        base_->name,
        least == most ? seeds_text(most) + " each" : fmt::format("{} to {} each", least, seeds_text(most)));
    const ArmResult* chosen = results_.arm(advice.arm);
    size_t told = 0;
    for (const ArmResult* arm : arms_) {
      const bool rival =
          std::find(advice.rivals.begin(), advice.rivals.end(), arm->id) != advice.rivals.end();
      if (arm == base_ || arm == chosen || rival || !arm->difference || arm->difference->n < 2) continue;
      const bool beyond = chosen != nullptr && faster(*arm) && arm->speedup.mean > chosen->speedup.mean;
      const std::string times = times_text(arm->speedup.mean);
      if (told == kMostTold) break;
      const size_t before = text.all.size();
      if (beyond && is_worse(*arm)) {
        text.say("{} is faster still ({}) but loses quality ({}).", arm->name, times, evidence(*arm));
      } else if (beyond && !keeps_quality(*arm)) {
        text.say("{} is faster still ({}), but whether it loses quality is open ({}); {}.", arm->name, times,
                 evidence(*arm), needed(*arm));
      } else if (is_better(*arm)) {
        text.say("{} is better in quality ({}) and {}.", arm->name, evidence(*arm), arm->words);
      } else if (is_worse(*arm) && arm->has_flag("slower")) {
        text.say("{} is both slower and worse ({}).", arm->name, evidence(*arm));
      }
      if (text.all.size() > before) ++told;
    }
    if (const auto names = with("slower"); !names.empty())
      text.say("Slower than {}: {}.", whom_, some_of(names));
    if (const std::string more = caveats(); !more.empty()) text.say("{}", more);
    return text.all;
  }

  /// Names of the arms that have the flag and are not left out.
  std::vector<std::string> with(const char* code) const {
    std::vector<std::string> names;
    for (const ArmResult* arm : all_) {
      if (!arm->excluded && arm->kind != "control" && arm->has_flag(code)) names.push_back(arm->name);
    }
    return names;
  }

  /// What readers must know before they act on it.
  std::string caveats() const {
    Text text;
    size_t left_out = 0;
    for (const ArmResult* arm : all_) {
      if (!arm->excluded || ++left_out > kMostTold) continue;
      const auto failed =
          std::find_if(arm->checks.begin(), arm->checks.end(), [](const Check& check) { return !check.ok; });
      text.say("{} is left out: {}.", arm->name, failed->text);
    }
    if (left_out > kMostTold) text.say("{} more are left out.", left_out - kMostTold);
    const auto tell = [&](const char* code, const char* before, const char* after) {
      if (const auto names = with(code); !names.empty()) text.say("{} {}{}", before, some_of(names), after);
    };
    tell("collapsed", "Seeds collapsed in", ": look at them before you trust a mean.");
    tell("rate-at-edge", "The best rate lies on the edge of what was tried in", ".");
    tell("busy", "The machine was busy while", " ran: repeat on a quiet one before you trust speeds.");
    tell("side-by-side", "Speeds do not count, because other runs ran at the same time, of", ".");
    tell("other-version", "Speeds do not count, because another version of the program made them, of", ".");
    return text.all;
  }

  const Results& results_;
  Arms all_, arms_;
  const ArmResult *base_ = nullptr, *slow_ = nullptr;
  double stolen_ = 0;
  std::string whom_;
};

}  // namespace

double tolerated_loss(const Measure& measure, double baseline) {
  return measure.percent ? 0.01 : 0.02 * std::abs(baseline);
}

Advice advise(const Results& results) {
  int64_t groups = 1;
  for (const ArmResult& arm : results.arms) groups = std::max(groups, arm.group + 1);
  Advice first = GroupAdvice(results, 0).give();
  for (int64_t group = 1; group < groups; ++group) {
    const Advice other = GroupAdvice(results, group).give();
    first.paragraph += fmt::format("{}Problem {}: {} {}", first.paragraph.empty() ? "" : " ", group + 1,
                                   other.sentence, other.paragraph);
  }
  return first;
}

}  // namespace syncopate::report
