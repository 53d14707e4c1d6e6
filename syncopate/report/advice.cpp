#include "syncopate/report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "syncopate/report/attachments.h"
#include "syncopate/report/comparison.h"
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

using RunsById = std::unordered_map<std::string_view, const RunResult*>;

/// Advice about arms that learn the same from the same data, on one network where there are several.
class GroupAdvice {
 public:
  GroupAdvice(const Results& results, const RunsById& runs, int64_t group, const NetworkName* network)
      : results_(results), runs_(runs) {
    for (const ArmResult& arm : results.arms) {
      if (arm.group != group || arm.simulated) continue;
      if (network != nullptr && arm.workers > 1 && arm.on != *network) continue;
      all_.push_back(&arm);
      if (!arm.excluded && arm.kind != "control" && arm.quality.known() && arm.speedup.known())
        arms_.push_back(&arm);
    }
    for (const ArmResult* arm : arms_) {
      if (arm->to_base && arm->to_base->against == arm->id) base_ = arm;
    }
    if (base_ == nullptr) return;
    const ArmResult* measured = results.arm(base_->speed_against);
    slow_ = measured == nullptr ? base_ : measured;
    // Of many arms that are equal some look better: what is called better must stand beside the others.
    Arms compared;
    std::vector<double> chances;
    for (const ArmResult* arm : arms_) {
      if (arm == base_ || !arm->to_base || arm->to_base->n < 2) continue;
      compared.push_back(arm);
      chances.push_back(chance_of(*arm->to_base));
    }
    const std::vector<bool> stands = stand_together(chances);
    for (size_t i = 0; i < compared.size(); ++i) {
      if (!compared[i]->to_base->better.value_or(false)) continue;
      (stands[i] ? better_ : seemingly_better_).push_back(compared[i]);
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

  const Measure& measure() const { return base_->measure; }

  std::vector<const RunResult*> runs_of(const ArmResult& arm) const {
    std::vector<const RunResult*> found;
    for (const std::string& id : arm.runs) {
      if (const auto run = runs_.find(id); run != runs_.end()) found.push_back(run->second);
    }
    return found;
  }

  // What went wrong.

  template <typename Holds>
  std::vector<std::string> seeds_where(const ArmResult& arm, const Holds& holds) const {
    std::vector<std::string> seeds;
    for (const RunResult* run : runs_of(arm)) {
      if (holds(*run)) seeds.push_back(std::to_string(run->seed));
    }
    return seeds;
  }
  std::vector<std::string> diverged(const ArmResult& arm) const {
    return seeds_where(arm, [](const RunResult& run) { return run.state == "diverged"; });
  }
  std::vector<std::string> failed(const ArmResult& arm) const {
    return seeds_where(arm,
                       [](const RunResult& run) { return run.state == "failed" || run.state == "killed"; });
  }
  std::vector<std::string> collapsed(const ArmResult& arm) const {
    return seeds_where(arm, [](const RunResult& run) { return run.collapsed; });
  }

  /// Why a mean over its seeds is not to be trusted: "seed 2 diverged"; empty: nothing went wrong.
  std::string trouble(const ArmResult& arm) const {
    std::vector<std::string> told;
    const auto tell = [&](const std::vector<std::string>& seeds, const char* what) {
      if (!seeds.empty()) told.push_back(fmt::format("{} {}", seeds_named(seeds), what));
    };
    tell(diverged(arm), "diverged");
    tell(failed(arm), "failed");
    tell(collapsed(arm), "collapsed");
    return joined(told, "and");
  }
  bool sound(const ArmResult& arm) const { return trouble(arm).empty(); }

  // Speed.

  /// The share of an arm's cores that others kept busy: on a quiet machine it could have been as much faster.
  double stolen(const ArmResult& arm) const {
    if (!arm.has_flag("busy")) return 0;
    double cores = 0;
    for (const RunResult* run : runs_of(arm)) cores = std::max(cores, static_cast<double>(run->cores));
    return cores > 0 ? std::min(1.0, arm.outside_load / cores) : 1;
  }

  bool timed(const ArmResult& arm) const { return arm.timed_fairly() && slow_->timed_fairly(); }

  /// Whether its speed-up stands, whatever others did on the machine.
  bool faster(const ArmResult& arm) const {
    if (&arm == slow_ || !timed(arm)) return false;
    // One run says something of speed, if the step is large: thousands of steps are behind it.
    const double least = arm.speedup.n > 1 ? arm.speedup.low : arm.speedup.mean / kOneRunTells;
    const double quiet = 1 - stolen(*slow_);
    return least * quiet > 1 && arm.speedup.mean * quiet > 1 + kNoStep;
  }

  /// Whether it may be faster, but not so that one could claim it.
  bool perhaps_faster(const ArmResult& arm) const {
    if (&arm == slow_ || faster(arm)) return false;
    return !timed(arm) || arm.speedup.mean > (1 + kNoStep) * (1 - stolen(arm));
  }

  Advice speed_is_open(const ArmResult& arm) const {
    std::string reason;
    if (!timed(arm)) {
      reason = "the timing of these runs does not count";
    } else if (arm.has_flag("busy") && arm.speedup.mean <= 1 + kNoStep) {  // others cannot make it faster
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
            .sentence = fmt::format("Undecided between {} and {}: {} was {} as fast as {}, but {}.", arm.name,
                                    other.name, arm.name, times_text(arm.speedup.mean), whom_, reason),
            .arm = "",
            .rivals = {arm.id, other.id}};
  }

  /// What one would use instead of it.
  const ArmResult& other_than(const ArmResult& arm) const { return &arm == base_ ? *slow_ : *base_; }

  /// Whether the seeds say that the one is faster than the other, even if that had had a quiet machine.
  bool told_apart(const ArmResult& winner, const ArmResult& arm) const {
    std::map<int64_t, double> ours;
    for (const RunResult* run : runs_of(winner)) {
      if (std::isfinite(run->speedup)) ours[run->seed] = run->speedup;
    }
    const double quiet = 1 - stolen(arm);
    std::vector<double> differences;
    for (const RunResult* run : runs_of(arm)) {
      const auto found = ours.find(run->seed);
      if (found != ours.end() && std::isfinite(run->speedup))
        differences.push_back(found->second - run->speedup / quiet);
    }
    if (differences.size() < 2) return winner.speedup.mean > kOneRunTells * arm.speedup.mean / quiet;
    return estimate(std::move(differences)).low > 0;
  }

  // Quality, always against the baseline.

  double loss_limit() const { return tolerated_loss(measure(), base_->quality.mean); }

  /// A difference as a loss.
  double loss(double difference) const { return measure().higher_is_better ? -difference : difference; }

  bool keeps_quality(const ArmResult& arm) const {
    if (!arm.to_base) return false;
    const Difference& d = *arm.to_base;
    if (d.same || &arm == base_) return true;
    return d.enough && std::max(loss(d.low), loss(d.high)) <= loss_limit();
  }
  bool is_worse(const ArmResult& arm) const {
    return arm.to_base && arm.to_base->decided && !*arm.to_base->better;
  }
  bool is_better(const ArmResult& arm) const {
    return std::find(better_.begin(), better_.end(), &arm) != better_.end();
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
      if (holds(*arm)) found.push_back(arm);
    }
    return found;
  }

  std::string evidence(const ArmResult& arm) const {
    if (&arm == base_) return "the baseline";
    return fmt::format("difference {}, {}", difference_text(measure(), *arm.to_base),
                       seeds_text(arm.to_base->n));
  }

  std::string limit_text() const {
    return measure().percent ? std::string("the one point that is tolerated here")
                             : fmt::format("the {:.2f} (2 %) that are tolerated here", loss_limit());
  }

  /// Of a loss that is sure and small.
  std::string small_loss(const ArmResult& arm) const {
    const double unit = measure().percent ? 100 : 1;
    const Difference& d = *arm.to_base;
    return fmt::format("loses {:.2f}{} (± {:.2f}, {}), less than {}", unit * std::abs(d.mean),
                       measure().percent ? " points" : "", unit * d.half(), seeds_text(d.n), limit_text());
  }

  /// Of an arm that keeps its quality.
  std::string kept(const ArmResult& arm) const {
    if (is_worse(arm)) return "it " + small_loss(arm);
    const char* quality = is_better(arm)      ? "and better"
                          : arm.to_base->same ? "with the same quality"
                                              : "nothing lost";
    return fmt::format("{} ({})", quality, evidence(arm));
  }

  /// How many seeds would show either that no loss matters, or that there is one.
  std::string needed(const ArmResult& arm) const {
    const Difference& d = *arm.to_base;
    const double lost = loss(d.mean), room = loss_limit() - lost;
    std::optional<int64_t> seeds;
    for (const double margin : {room, lost}) {
      if (!(margin > 0)) continue;
      const auto count = seeds_needed(margin, d.sd);
      if (count && (!seeds || *count < *seeds)) seeds = count;
    }
    if (!seeds) return "no number of seeds that one would run could tell";
    return fmt::format("about {} more would tell", seeds_text(std::max<int64_t>(1, *seeds - d.n)));
  }

  Advice decide() const {
    const bool few_seeds = std::all_of(arms_.begin(), arms_.end(), [&](const ArmResult* arm) {
      return arm == base_ || !arm->to_base || arm->to_base->n < 2;
    });
    const Arms quick = where([&](const ArmResult& arm) { return faster(arm); });
    if (few_seeds) return by_speed_alone(quick);
    const Arms good =
        where([&](const ArmResult& arm) { return faster(arm) && keeps_quality(arm) && sound(arm); });
    if (!good.empty()) return choose(good);
    const Arms open = where([&](const ArmResult& arm) { return faster(arm) && !is_worse(arm); });
    if (!open.empty()) return undecided(open);
    const Arms better = where([&](const ArmResult& arm) { return is_better(arm) && sound(arm); });
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

  /// That nothing can be called better or as good as a baseline that did not learn.
  Advice no_measure(const ArmResult& arm) const {
    return {.verdict = "undecided",
            .sentence = fmt::format(
                "Undecided: {} is {}, but {} of {} collapsed, so its quality is nothing to compare with.",
                arm.name, arm.words, seeds_named(collapsed(*base_)), base_->name),
            .rivals = {arm.id, base_->id}};
  }

  Advice choose(const Arms& good) const {
    const ArmResult* winner = fastest(good);
    if (!collapsed(*base_).empty()) return no_measure(*winner);
    Arms close{winner};
    for (const ArmResult* arm : good) {
      if (arm != winner && !told_apart(*winner, *arm)) close.push_back(arm);
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
            : fmt::format("{} is the best choice here: {}, {}.", winner->name, winner->words, kept(*winner));
    return {.verdict = "best", .sentence = sentence + beside, .arm = winner->id};
  }

  /// The one whose quality is decidedly better than that of each of the others; null: there is none.
  const ArmResult* best_quality(const Arms& arms) const {
    const double most = 0.05 / static_cast<double>(arms.size() - 1);
    for (const ArmResult* arm : arms) {
      const bool beats_all = std::all_of(arms.begin(), arms.end(), [&](const ArmResult* other) {
        if (other == arm) return true;
        const Difference d = quality_difference(measure(), runs_of(*arm), runs_of(*other));
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
      if (is_worse(*arm)) losers.push_back(fmt::format("{} {}", arm->name, small_loss(*arm)));
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
      if (sound(*arm)) well.push_back(arm);
    }
    const ArmResult& arm = *fastest(well.empty() ? open : well);
    if (!collapsed(*base_).empty()) return no_measure(arm);
    const ArmResult& other = other_than(arm);
    std::string why;
    if (well.empty() && collapsed(arm).size() == arm.runs.size()) {
      why = "all its seeds collapsed";
    } else if (well.empty()) {
      why = fmt::format("{}: the seeds that went well do not speak for those", trouble(arm));
    } else if (arm.to_base && arm.to_base->n > 1) {
      why = fmt::format("whether it loses quality is open ({}); {}", evidence(arm), needed(arm));
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
          return loss(a->quality.mean) > loss(b->quality.mean);
        });
    if (!collapsed(*base_).empty()) return no_measure(*arm);
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
      if (arm == base_ || arm == chosen || rival || !arm->to_base || arm->to_base->n < 2) continue;
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
      } else if (is_worse(*arm) && perhaps_faster(*arm)) {
        text.say("{} is worse ({}), and {}.", arm->name, evidence(*arm), arm->words);
      }
      if (text.all.size() > before) ++told;
    }
    if (!seemingly_better_.empty()) {
      std::vector<std::string> names;
      for (const ArmResult* arm : seemingly_better_) names.push_back(arm->name);
      text.say("By its own interval better, but not beyond what chance does among {} arms: {}.",
               arms_.size() - 1, some_of(names));
    }
    told = 0;
    for (const ArmResult* arm : arms_) {
      const ArmResult* against = arm->difference ? results_.arm(arm->difference->against) : nullptr;
      if (against == nullptr || against == base_ || arm == base_ || arm->difference->n < 2) continue;
      if (told++ == kMostTold) break;
      text.say("Against {}, {} has a difference of {} ({}).", against->name, arm->name,
               difference_text(measure(), *arm->difference), verdict_text(*arm->difference));
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

  /// Seeds that did not come to an end.
  void tell_losses(Text& text) const {
    size_t told = 0;
    for (const ArmResult* arm : all_) {
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
      tell(diverged(*arm), "diverged");
      tell(failed(*arm), "failed");
    }
    if (told > kMostTold) text.say("So did seeds of more arms: see the table.");
  }

  /// What readers must know before they act on it.
  std::string caveats() const {
    Text text;
    size_t left_out = 0;
    for (const ArmResult* arm : all_) {
      if (!arm->excluded || ++left_out > kMostTold) continue;
      const auto failing =
          std::find_if(arm->checks.begin(), arm->checks.end(), [](const Check& check) { return !check.ok; });
      text.say("{} is left out: {}.", arm->name, failing->text);
    }
    if (left_out > kMostTold) text.say("{} more are left out.", left_out - kMostTold);
    tell_losses(text);
    const auto tell = [&](const char* code, const char* before, const char* after) {
      if (const auto names = with(code); !names.empty()) text.say("{} {}{}", before, some_of(names), after);
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

  /// Below this a step in speed is none, and one run alone tells only a larger one.
  static constexpr double kNoStep = 0.02, kOneRunTells = 1.1;

  const Results& results_;
  const RunsById& runs_;
  Arms all_, arms_, better_, seemingly_better_;
  const ArmResult *base_ = nullptr, *slow_ = nullptr;
  std::string whom_;
};

}  // namespace

double tolerated_loss(const Measure& measure, double baseline) {
  return measure.percent ? 0.01 : 0.02 * std::abs(baseline);
}

namespace {

Arms measured_in(const Results& results, int64_t group) {
  Arms found;
  for (const ArmResult& arm : results.arms) {
    if (arm.group == group && !arm.simulated) found.push_back(&arm);
  }
  return found;
}

/// What to do on each of several networks: which of them one has is no choice.
Advice by_network(const Results& results, const RunsById& runs, int64_t group,
                  const std::vector<NetworkName>& networks) {
  Advice all;
  std::vector<std::string> answers;
  for (const NetworkName& network : networks) {
    const Advice one = GroupAdvice(results, runs, group, &network).give();
    const std::string where = network_text(network);
    const ArmResult* arm = results.arm(one.arm);
    if (one.verdict == "best" && arm != nullptr) {
      answers.push_back(fmt::format("{} on {} ({})", arm->name, where, times_text(arm->speedup.mean)));
    } else if (one.verdict == "none") {
      answers.push_back(fmt::format("one worker rather than {}", where));
    } else {
      answers.push_back(fmt::format("undecided on {}", where));
    }
    if (all.verdict == "nothing" || (all.verdict != "best" && one.verdict == "best")) {
      all.verdict = one.verdict;
      all.arm = one.arm;
    }
    all.rivals.insert(all.rivals.end(), one.rivals.begin(), one.rivals.end());
    if (one.arm != all.arm && !one.arm.empty()) all.rivals.push_back(one.arm);
    all.paragraph +=
        fmt::format("{}On {}: {} {}", all.paragraph.empty() ? "" : " ", where, one.sentence, one.paragraph);
  }
  all.sentence = fmt::format("It depends on the network: {}.", joined(answers, "and"));
  return all;
}

Advice advice_of(const Results& results, const RunsById& runs, int64_t group) {
  const std::vector<NetworkName> networks = networks_in(measured_in(results, group));
  return networks.size() > 1 ? by_network(results, runs, group, networks)
                             : GroupAdvice(results, runs, group, nullptr).give();
}

/// Of a folder in which nothing was trained: what a simulation says about speed, and no more.
Advice advice_of_simulations(const Results& results) {
  Advice advice{.verdict = "nothing"};
  const ArmResult* fastest = nullptr;
  for (const ArmResult& arm : results.arms) {
    if (arm.speedup.known() && (fastest == nullptr || arm.speedup.mean > fastest->speedup.mean))
      fastest = &arm;
  }
  advice.sentence = "All of these are simulated: nothing was trained, so they say nothing about quality.";
  if (fastest == nullptr || results.arms.size() < 2) return advice;
  const ArmResult* base = results.arm(fastest->speed_against);
  if (fastest == base) {
    advice.sentence += fmt::format(" By the simulation {} is the fastest.", fastest->name);
  } else {
    advice.sentence +=
        fmt::format(" By the simulation {} is the fastest: {}.", fastest->name, fastest->words);
  }
  return advice;
}

/// Of a folder without runs.
Advice advice_of_predictions(const Results& results) {
  Advice advice{.verdict = "nothing"};
  std::vector<std::string> sentences;
  if (results.advice_check) sentences.push_back(advice_sentence(results));
  for (const Attachment& placement : results.placements) sentences.push_back(placement_sentence(placement));
  for (size_t i = 0; i < sentences.size(); ++i) {
    std::string& into = i == 0 ? advice.sentence : advice.paragraph;
    into += (into.empty() ? "" : " ") + sentences[i];
    if (i == kMostTold) break;
  }
  return advice;
}

}  // namespace

Advice advise(const Results& results) {
  if (results.runs.empty() && (results.advice_check || !results.placements.empty()))
    return advice_of_predictions(results);
  const Arms done = [&] {
    Arms found;
    for (const ArmResult& arm : results.arms) {
      if (arm.state != "failed") found.push_back(&arm);
    }
    return found;
  }();
  const auto is_simulated = [](const ArmResult* arm) { return arm->simulated; };
  if (!done.empty() && std::all_of(done.begin(), done.end(), is_simulated))
    return advice_of_simulations(results);
  int64_t groups = 1;
  for (const ArmResult& arm : results.arms) {
    if (!arm.simulated) groups = std::max(groups, arm.group + 1);
  }
  RunsById runs;
  for (const RunResult& run : results.runs) runs.emplace(run.id, &run);
  Advice first = advice_of(results, runs, 0);
  for (int64_t group = 1; group < groups; ++group) {
    if (measured_in(results, group).empty()) continue;
    const Advice other = advice_of(results, runs, group);
    first.paragraph += fmt::format("{}Problem {}: {} {}", first.paragraph.empty() ? "" : " ", group + 1,
                                   other.sentence, other.paragraph);
  }
  return first;
}

}  // namespace syncopate::report
