#include "syncopate/report/advice/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/report/advice/evidence.h"
#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

class Verdict {
 public:
  explicit Verdict(const Claims& claims)
      : claims_(claims), group_(claims.group()), base_(group_.base()), slow_(group_.slow()) {}

  Advice decide() const {
    const bool few_seeds = std::all_of(
        group_.compared().begin(), group_.compared().end(),
        [&](const ArmResult* arm) { return arm == base_ || !arm->to_base || arm->to_base->n < 2; });
    const Arms quick = where([&](const ArmResult& arm) { return claims_.faster(arm); });
    if (few_seeds) return by_speed_alone(quick);
    const Arms good = where([&](const ArmResult& arm) {
      return claims_.faster(arm) && claims_.keeps_quality(arm) && group_.sound(arm);
    });
    if (!good.empty()) return choose(good);
    const Arms open =
        where([&](const ArmResult& arm) { return claims_.faster(arm) && !claims_.is_worse(arm); });
    if (!open.empty()) return undecided(open);
    const Arms better =
        where([&](const ArmResult& arm) { return claims_.is_better(arm) && group_.sound(arm); });
    if (!better.empty()) return better_but_not_faster(better);
    const Arms perhaps =
        where([&](const ArmResult& arm) { return claims_.perhaps_faster(arm) && !claims_.is_worse(arm); });
    if (!perhaps.empty()) return speed_is_open(*fastest(perhaps));
    return none(quick);
  }

 private:
  Advice by_speed_alone(const Arms& quick) const {
    if (quick.empty()) {
      const Arms perhaps = where([&](const ArmResult& arm) { return claims_.perhaps_faster(arm); });
      if (!perhaps.empty()) {
        Advice open = speed_is_open(*fastest(perhaps));
        open.sentence += " One seed decides nothing about quality.";
        return open;
      }
      return {.verdict = "none",
              .sentence = fmt::format(
                  "None of these was faster than {} on this machine; one seed decides nothing about quality.",
                  group_.slow_name())};
    }
    const ArmResult* arm = fastest(quick);
    return {
        .verdict = "undecided",
        .sentence = fmt::format("One seed decides nothing about quality; by speed alone {} comes first: {}.",
                                arm->name, arm->words),
        .rivals = ids(quick)};
  }

  bool base_collapsed() const { return !group_.collapsed(*base_).empty(); }

  /// That nothing can be called better or as good as a baseline that did not learn.
  Advice no_measure(const ArmResult& arm) const {
    return {.verdict = "undecided",
            .sentence = fmt::format(
                "Undecided: {} is {}, but {} of {} collapsed, so its quality is nothing to compare with.",
                arm.name, arm.words, seeds_named(group_.collapsed(*base_)), base_->name),
            .rivals = {arm.id, base_->id}};
  }

  Advice choose(const Arms& good) const {
    const ArmResult* winner = fastest(good);
    if (base_collapsed()) return no_measure(*winner);
    Arms close{winner};
    for (const ArmResult* arm : good) {
      if (arm != winner && !claims_.told_apart(*winner, *arm)) close.push_back(arm);
    }
    std::string beside;
    if (close.size() > 1) {
      const ArmResult* superior = best_quality(close);
      if (superior == nullptr) return too_close(close);
      winner = superior;
      std::vector<std::string> others;
      for (const ArmResult* arm : close) {
        if (arm != winner) others.push_back(arm->name);
      }
      beside = fmt::format(" As fast, by what the seeds can tell, but worse than {}: {}.", winner->name,
                           some_of(others));
    }
    std::string sentence =
        winner == base_
            ? fmt::format(
                  "{} is the best choice here: {}; it is the baseline, and nothing that keeps its quality is "
                  "faster.",
                  winner->name, winner->words)
            : fmt::format("{} is the best choice here: {}, {}.", winner->name, winner->words,
                          kept_text(claims_, *winner));
    return {.verdict = "best", .sentence = sentence + beside, .arm = winner->id};
  }

  /// The one whose quality is decidedly better than that of each of the others; null: there is none.
  const ArmResult* best_quality(const Arms& arms) const {
    const double most = 0.05 / static_cast<double>(arms.size() - 1);
    for (const ArmResult* arm : arms) {
      const bool beats_all = std::all_of(arms.begin(), arms.end(), [&](const ArmResult* other) {
        if (other == arm) return true;
        const Difference d =
            quality_difference(group_.measure(), group_.runs_of(*arm), group_.runs_of(*other));
        return d.better.value_or(false) && chance_of(d) <= most;
      });
      if (beats_all) return arm;
    }
    return nullptr;
  }

  Advice too_close(const Arms& close) const {
    std::vector<std::string> names, losers, busy;
    for (const ArmResult* arm : close) {
      names.push_back(arm->name);
      if (claims_.is_worse(*arm))
        losers.push_back(fmt::format("{} {}", arm->name, small_loss_text(claims_, *arm)));
      if (arm->has_flag("busy")) busy.push_back(arm->name);
    }
    const Arms others(close.begin() + 1, close.end());
    return {.verdict = "undecided",
            .sentence = fmt::format(
                "Undecided between {}: {}, and their speeds ({} and {}) lie too close for {}{}.",
                some_of(names), losers.empty() ? std::string("none loses quality") : some_of(losers),
                times_text(close[0]->speedup.mean), times_text(fastest(others)->speedup.mean),
                seeds_text(close[0]->speedup.n),
                busy.empty() ? "" : fmt::format(" on a machine that was busy while {} ran", some_of(busy))),
            .arm = close[0]->id,
            .rivals = ids(others)};
  }

  Advice undecided(const Arms& open) const {
    Arms well;
    for (const ArmResult* arm : open) {
      if (group_.sound(*arm)) well.push_back(arm);
    }
    const ArmResult& arm = *fastest(well.empty() ? open : well);
    if (base_collapsed()) return no_measure(arm);
    const ArmResult& other = other_than(arm);
    std::string why;
    if (well.empty() && group_.collapsed(arm).size() == arm.runs.size()) {
      why = "all its seeds collapsed";
    } else if (well.empty()) {
      why = fmt::format("{}: the seeds that went well do not speak for those", group_.trouble(arm));
    } else if (arm.to_base && arm.to_base->n > 1) {
      why = fmt::format("whether it loses quality is open ({}); {}", evidence_text(group_, arm),
                        needed_text(claims_, arm));
    } else {
      why = "one seed decides nothing about quality";
    }
    return {.verdict = "undecided",
            .sentence = fmt::format("Undecided between {} and {}: {} is {}, but {}.", arm.name, other.name,
                                    arm.name, arm.words, why),
            .arm = "",
            .rivals = {arm.id, other.id}};
  }

  Advice better_but_not_faster(const Arms& better) const {
    const ArmResult* arm =
        *std::max_element(better.begin(), better.end(), [&](const ArmResult* a, const ArmResult* b) {
          return claims_.loss(a->quality.mean) > claims_.loss(b->quality.mean);
        });
    if (base_collapsed()) return no_measure(*arm);
    return {.verdict = "best",
            .sentence = fmt::format("{} is the best choice here for quality ({}); it is {}.", arm->name,
                                    evidence_text(group_, *arm), arm == slow_ ? "no faster" : arm->words),
            .arm = arm->id};
  }

  Advice none(const Arms& quick) const {
    if (quick.empty())
      return {.verdict = "none",
              .sentence = fmt::format("None of these beats {} on this machine.", group_.slow_name())};
    const ArmResult* arm = fastest(quick);
    return {.verdict = "none",
            .sentence = fmt::format(
                "None of these is faster than {} without losing quality: {} is {}, but worse ({}).",
                group_.slow_name(), arm->name, arm->words, evidence_text(group_, *arm))};
  }

  Advice speed_is_open(const ArmResult& arm) const {
    std::string reason;
    if (!claims_.timed(arm)) {
      reason = "the timing of these runs does not count";
    } else if (arm.has_flag("busy") && arm.speedup.mean <= 1 + Claims::kNoStep) {
      // Others can only have slowed it down.
      reason = fmt::format("the machine was busy while {} ran", arm.name);
    } else if (slow_->has_flag("busy")) {
      reason = fmt::format("the machine was busy while {} ran", slow_->name);
    } else {
      reason = fmt::format("{} leave anything from {} to {} possible", seeds_text(arm.speedup.n),
                           times_text(std::max(0.0, arm.speedup.low)), times_text(arm.speedup.high));
      if (arm.speedup.n < 2) reason = "one run does not tell so small a step from chance";
    }
    const ArmResult& other = other_than(arm);
    return {.verdict = "undecided",
            .sentence =
                fmt::format("Undecided between {} and {}: {} was {} as fast as {}, but {}.", arm.name,
                            other.name, arm.name, times_text(arm.speedup.mean), group_.slow_name(), reason),
            .arm = "",
            .rivals = {arm.id, other.id}};
  }

  /// What one would use instead of it.
  const ArmResult& other_than(const ArmResult& arm) const { return &arm == base_ ? *slow_ : *base_; }

  static const ArmResult* fastest(const Arms& arms) {
    return *std::max_element(arms.begin(), arms.end(), [](const ArmResult* a, const ArmResult* b) {
      return a->speedup.mean < b->speedup.mean;
    });
  }

  static std::vector<std::string> ids(const Arms& arms) {
    std::vector<std::string> list;
    for (const ArmResult* arm : arms) list.push_back(arm->id);
    return list;
  }

  template <typename Holds>
  Arms where(const Holds& holds) const {
    Arms found;
    for (const ArmResult* arm : group_.compared()) {
      if (holds(*arm)) found.push_back(arm);
    }
    return found;
  }

  const Claims& claims_;
  const ArmGroup& group_;
  const ArmResult *base_, *slow_;
};

}  // namespace

Advice verdict_of(const Claims& claims) { return Verdict(claims).decide(); }

}  // namespace syncopate::report
