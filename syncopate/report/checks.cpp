// Fairness: each arm against the one that it is compared with.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "syncopate/base/text.h"
#include "syncopate/report/comparison.h"
#include "syncopate/report/traits.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

/// A run, and the one that it is compared with.
struct Pair {
  const RunData* run = nullptr;
  const RunData* base = nullptr;  ///< the same seed's where there is one
  bool same_seed = false;

  const record::RunRecord& ours() const { return *run->files->record; }
  const record::RunRecord& theirs() const { return *base->files->record; }
};

double batch_of(const record::RunRecord& record) {
  if (record.global_batch > 0) return static_cast<double>(record.global_batch);
  return record.steps > 0 ? static_cast<double>(record.examples) / static_cast<double>(record.steps) : 0;
}

bool close(double a, double b) { return std::abs(a - b) <= 0.02 * std::max(a, b); }

std::string updates_text(double count) { return count == 1 ? "1 update" : grouped(count) + " updates"; }

bool runs_free(const record::RunRecord& record) { return rhythm_of(record.strategy) == spec::Rhythm::kFree; }

/// By how much more often, and by smaller batches, a run updates only because its workers run free.
double freedom_of(const record::RunRecord& record) {
  return runs_free(record) ? static_cast<double>(std::max<int64_t>(1, record.workers)) : 1;
}

bool ended_early(const record::RunRecord& record) { return record.ended != "steps"; }

/// What it says about when to end before its steps are made; 0: nothing.
double limit_of(const RunData& run, const std::string& ended) {
  return parse_number(run.files->setting(ended == "time limit" ? "train.time_limit" : "train.patience"))
      .value_or(0);
}

/// Whether one of them ended early, by a limit that both have.
bool ended_by_same_limit(const Pair& pair) {
  bool early = false;
  for (const record::RunRecord* record : {&pair.ours(), &pair.theirs()}) {
    if (!ended_early(*record)) continue;
    const double limit = limit_of(*pair.run, record->ended);
    if (!(limit > 0) || limit != limit_of(*pair.base, record->ended)) return false;
    early = true;
  }
  return early;
}

class ArmChecks {
 public:
  ArmChecks(Comparison& of, size_t arm) : of_(of), index_(arm), arm_(of.results.arms[arm]) {
    arm_.checks.clear();
    arm_.flags.clear();
    arm_.excluded = false;
    candidate_ = arm_.workers == 1 &&
                 std::find(of.candidates.begin(), of.candidates.end(), arm) != of.candidates.end();
    const size_t base = of.quality_base[arm] == Comparison::kNone ? arm : of.quality_base[arm];
    base_name_ = of.results.arms[base].name;
    alone_ = base == arm;
    for (const RunData* run : of.runs[arm]) {
      if (!run->done()) continue;
      const RunData* twin = alone_ ? nullptr : of.done_run(base, run->seed);
      const RunData* other = twin != nullptr ? twin : of.any_done(base);
      if (other != nullptr) pairs_.push_back({run, other, twin != nullptr});
    }
  }

  void run() {
    if (pairs_.empty()) return;
    network();
    if (arm_.simulated) {
      add("trained", true, "simulated: nothing was trained, so there is nothing to check", false, false);
      return;
    }
    trained();
    examples();
    start();
    evaluation();
    data();
    machine();
    threads();
    batch_and_updates();
    selection();
    tell_early_ends();
    arm_.excluded =
        std::any_of(arm_.checks.begin(), arm_.checks.end(), [](const Check& check) { return !check.ok; });
  }

 private:
  void add(const char* code, bool ok, std::string text, bool by_nature = false, bool known = true) {
    if (!ok && of_.differs_allowed(code)) {
      ok = true;
      text += "; the experiment says that this may differ";
    }
    arm_.checks.push_back({code, ok, std::move(text), by_nature, known});
  }

  /// The first pair for which it does not hold; null: it holds for all.
  template <typename Holds>
  const Pair* breach(const Holds& holds) const {
    const auto found = std::find_if_not(pairs_.begin(), pairs_.end(), holds);
    return found == pairs_.end() ? nullptr : &*found;
  }

  /// Speeds on other networks are another question, and no unfairness.
  void network() {
    const auto& arms = of_.results.arms;
    if (std::none_of(arms.begin(), arms.end(), [](const ArmResult& arm) { return !arm.on.name.empty(); }))
      return;
    const size_t at = of_.speed_base[index_];
    const ArmResult& base = at == Comparison::kNone ? arm_ : arms[at];
    const auto where = [](const ArmResult& arm) {
      return arm.on.name.empty() ? std::string("no network") : network_text(arm.on);
    };
    if (arm_.on == base.on) {
      add("network", true, where(arm_) + (at == index_ || alone_ ? "" : ", as " + base.name));
    } else if (base.workers == 1) {
      add("network", true, fmt::format("{}; {} needs none", where(arm_), base.name));
    } else {
      std::string text =
          fmt::format("{}, {} {}: compare speeds within a network", where(arm_), base.name, where(base));
      arm_.flags.push_back({"other-network", text});
      add("network", true, std::move(text), true);
    }
  }

  void trained() {
    size_t nothing = 0, no_lower = 0, known = 0;
    for (const Pair& pair : pairs_) {
      const RunFiles& files = *pair.run->files;
      if (pair.ours().steps == 0 || pair.ours().examples == 0) ++nothing;
      // A few steps say nothing: their losses differ by the luck of their batches.
      if (files.recorded_steps < 20 || !std::isfinite(files.first_loss)) continue;
      ++known;
      if (!(files.last_loss < files.first_loss)) ++no_lower;
    }
    if (nothing > 0) {
      add("trained", false,
          fmt::format("{} of {} runs trained on nothing: 0 steps or 0 examples", nothing, pairs_.size()));
    } else if (known > 0 && no_lower == known) {
      const RunFiles& files = *pairs_[0].run->files;
      add("trained", false,
          fmt::format("its loss did not fall: {:.3f} at the start, {:.3f} at the end", files.first_loss,
                      files.last_loss));
    } else {
      add("trained", true, known > 0 ? "its loss fell" : "too few steps to see whether its loss fell");
    }
  }

  void examples() {
    const auto apart = [](const Pair& pair) {
      return std::abs(static_cast<double>(pair.ours().examples - pair.theirs().examples));
    };
    // The rest of a batch, where that is little.
    const auto same = [&](const Pair& pair) {
      const double batch = std::max(batch_of(pair.ours()), batch_of(pair.theirs()));
      const auto most = static_cast<double>(std::max(pair.ours().examples, pair.theirs().examples));
      return apart(pair) <= std::min(batch, 0.02 * most);
    };
    const auto told = [&](const Pair& pair) {
      return fmt::format("consumed {} examples in seed {}, {} consumed {}",
                         grouped(static_cast<double>(pair.ours().examples)), pair.run->seed, base_name_,
                         grouped(static_cast<double>(pair.theirs().examples)));
    };
    if (const Pair* pair = breach(same)) {
      // Ended by the clock or by a plateau, as the other could have: how far it came is then a result.
      const bool chosen = ended_by_same_limit(*pair);
      std::string text = told(*pair);
      if (const bool ours = ended_early(pair->ours()); ours || ended_early(pair->theirs())) {
        text += fmt::format(", because {} ended by its {}", ours ? "it" : base_name_,
                            ours ? pair->ours().ended : pair->theirs().ended);
        if (!chosen) text += ", and the two do not have the same limit";
      }
      add("examples", chosen, std::move(text), chosen);
    } else if (const Pair* rest = breach([&](const Pair& each) { return apart(each) == 0; })) {
      add("examples", true, told(*rest) + ": less than a batch and 2 % apart");
    } else {
      add("examples", true, fmt::format("{} examples{}", grouped(arm_.examples), as_base()));
    }
  }

  void tell_early_ends() {
    std::vector<std::string> seeds;
    std::string how;
    for (const Pair& pair : pairs_) {
      if (!ended_early(pair.ours())) continue;
      seeds.push_back(std::to_string(pair.run->seed));
      how = pair.ours().ended;
    }
    if (seeds.empty()) return;
    arm_.flags.push_back(
        {"ended-early", fmt::format("{} ended by {} {}, before all steps were made", seeds_named(seeds),
                                    how == "plateau" ? "a" : "the", how)});
  }

  /// Whether the run or folder is a phase of the experiment.
  bool is_phase(const std::string& init_from) const {
    if (init_from.empty()) return true;
    const std::filesystem::path path = std::filesystem::path(init_from).lexically_normal();
    return std::any_of(of_.sweep.runs.begin(), of_.sweep.runs.end(), [&](const RunData& run) {
      const std::filesystem::path folder(run.folder);
      return run.kind == "phase" && std::find(path.begin(), path.end(), folder) != path.end();
    });
  }

  void start() {
    const auto same = [](const Pair& pair) {
      if (!pair.same_seed) return true;
      if (pair.ours().start_hash.empty() || pair.theirs().start_hash.empty())
        return pair.ours().init_from == pair.theirs().init_from;
      return pair.ours().start_hash == pair.theirs().start_hash;
    };
    if (const Pair* pair = breach(same)) {
      const std::string &ours = pair->ours().init_from, &theirs = pair->theirs().init_from;
      if (ours == theirs) {
        add("start", false,
            fmt::format("does not start from the same parameters as {} in seed {}", base_name_,
                        pair->run->seed));
        return;
      }
      // What a phase of the experiment trained is its subject; any other head start is none of it.
      const bool phase = is_phase(ours) && is_phase(theirs);
      const std::string text =
          fmt::format("starts from {}, {} from {}", named(ours), base_name_, named(theirs));
      arm_.flags.push_back({"other-start", text});
      add("start", phase, text, phase);
      return;
    }
    add_seedwise("start", &record::RunRecord::start_hash, "the same first parameters");
  }

  void evaluation() {
    const auto same = [](const Pair& pair) {
      const record::RunRecord &ours = pair.ours(), &theirs = pair.theirs();
      // The hash is of what the model reads: a vocabulary of another seed's training examples changes it.
      if (pair.same_seed && !ours.test_hash.empty() && !theirs.test_hash.empty() &&
          ours.test_hash != theirs.test_hash)
        return false;
      if (ours.eval.has_value() != theirs.eval.has_value()) return false;
      return !ours.eval || ours.eval->examples == theirs.eval->examples;
    };
    if (const Pair* pair = breach(same)) {
      const auto count = [](const record::RunRecord& record) {
        return record.eval ? grouped(static_cast<double>(record.eval->examples)) : std::string("no");
      };
      const bool other_count = count(pair->ours()) != count(pair->theirs());
      add("evaluation", false,
          other_count ? fmt::format("tested on {} examples, {} on {}", count(pair->ours()), base_name_,
                                    count(pair->theirs()))
                      : fmt::format("not tested on the same examples as {}", base_name_));
      return;
    }
    const auto& eval = pairs_[0].ours().eval;
    add("evaluation", true,
        eval ? fmt::format("{} test examples{}", grouped(static_cast<double>(eval->examples)), as_base())
             : "nothing is tested");
  }

  void data() {
    const auto same = [](const Pair& pair) {
      return !pair.same_seed || pair.ours().data_hash.empty() || pair.theirs().data_hash.empty() ||
             pair.ours().data_hash == pair.theirs().data_hash;
    };
    if (const Pair* pair = breach(same)) {
      add("data", false, fmt::format("not the same data as {} in seed {}", base_name_, pair->run->seed));
      return;
    }
    add_seedwise("data", &record::RunRecord::data_hash, "the same data");
  }

  void machine() {
    const auto same_kind = [](const Pair& pair) { return same_machine(pair.ours(), pair.theirs()); };
    const auto same_host = [](const Pair& pair) {
      return pair.ours().provenance.host == pair.theirs().provenance.host;
    };
    if (const Pair* pair = breach(same_kind)) {
      add("machine", false,
          fmt::format("ran on {} ({}), {} on {} ({})", named(pair->ours().provenance.host),
                      about(pair->ours()), base_name_, named(pair->theirs().provenance.host),
                      about(pair->theirs())));
    } else if (const Pair* other = breach(same_host)) {
      // A container has a new name each time: the same processor under another name is a reason for doubt.
      const std::string text =
          fmt::format("ran on {}, {} on {}: the same kind of machine ({}), perhaps not the same one",
                      named(other->ours().provenance.host), base_name_,
                      named(other->theirs().provenance.host), about(other->ours()));
      add("machine", true, text, true);
      arm_.flags.push_back({"other-host", text});
    } else {
      const std::string& cpu = pairs_[0].ours().cpu;
      add("machine", true,
          fmt::format("{}{}", named(pairs_[0].ours().provenance.host), cpu.empty() ? "" : ", " + cpu));
    }
  }

  void threads() {
    const auto each = [](const Pair& pair) {
      return pair.ours().threads == 0 || pair.theirs().threads == 0 ||
             pair.ours().threads == pair.theirs().threads;
    };
    const Pair* pair = breach(each);
    if (pair == nullptr) {
      const int64_t count = pairs_[0].ours().threads;
      const bool known =
          breach([](const Pair& p) { return p.ours().threads > 0 && p.theirs().threads > 0; }) == nullptr;
      add("threads", true, known ? fmt::format("{} per worker{}", count, as_base()) : kNotKnown, false,
          known);
      return;
    }
    const auto total = [](const record::RunRecord& record) {
      const int64_t all = record.workers * record.threads;
      return record.cores > 0 ? std::min(all, record.cores) : all;
    };
    const auto free_choice = [](const RunData& run) {
      const std::string& threads = run.files->setting("compute.threads");
      return threads == "0" || threads == "auto" || threads.empty();
    };
    std::string text =
        fmt::format("{} per worker, {} has {}", pair->ours().threads, base_name_, pair->theirs().threads);
    const bool fair =
        breach([&](const Pair& p) { return each(p) || total(p.ours()) == total(p.theirs()); }) == nullptr;
    const bool automatic = breach([&](const Pair& p) {
                             return each(p) || (free_choice(*p.run) && free_choice(*p.base));
                           }) == nullptr;
    if (fair)
      text += ": as many cores in all";
    else if (automatic)
      text += ": each has what the program chooses by itself";
    add("threads", fair || automatic, std::move(text), fair || automatic);
  }

  void batch_and_updates() {
    const auto same_batch = [](const Pair& pair) {
      return close(batch_of(pair.ours()), batch_of(pair.theirs()));
    };
    const auto same_updates = [](const Pair& pair) {
      return std::abs(pair.ours().steps - pair.theirs().steps) <=
             std::max(pair.ours().steps, pair.theirs().steps) / 50;
    };
    // Workers that run free update with their own share of a batch, each as often as others do together. The
    // share is whole, so its product may be a little off.
    const auto free = [](const Pair& pair) { return runs_free(pair.ours()) || runs_free(pair.theirs()); };
    const auto natural_batch = [&](const Pair& pair) {
      const double share = batch_of(pair.theirs()) * freedom_of(pair.theirs()) / freedom_of(pair.ours());
      return free(pair) && std::abs(batch_of(pair.ours()) - share) < 1;
    };
    const auto natural_updates = [&](const Pair& pair) {
      const double rounds = static_cast<double>(pair.theirs().steps) / freedom_of(pair.theirs());
      const double ours = static_cast<double>(pair.ours().steps) / freedom_of(pair.ours());
      return free(pair) && (close(ours, rounds) || std::abs(ours - rounds) < 1);
    };
    const bool control = arm_.kind == "control";
    const bool controlled = of_.control_of(index_) != Comparison::kNone;
    const auto excuse = [&](const Pair& pair, bool natural) {
      if (natural) return fmt::format(": so {} works", pair.ours().strategy);
      if (control) return std::string(": it is a control, made for that");
      if (controlled)
        return std::string(": its quality is compared with a control of the same batch and updates");
      if (candidate_) return std::string(": it is the baseline of arms that are like it");
      return std::string();
    };
    const bool excused = control || controlled || candidate_;
    if (const Pair* pair = breach(same_batch)) {
      const bool natural =
          breach([&](const Pair& p) { return same_batch(p) || natural_batch(p); }) == nullptr;
      std::string text = fmt::format("{} examples in an update, {} has {}{}", grouped(batch_of(pair->ours())),
                                     base_name_, grouped(batch_of(pair->theirs())), excuse(*pair, natural));
      arm_.flags.push_back({"other-batch", text});
      add("batch", natural || excused, std::move(text), natural);
    } else {
      const Pair* off = breach([](const Pair& p) { return batch_of(p.ours()) == batch_of(p.theirs()); });
      add("batch", true,
          off == nullptr ? fmt::format("{} examples in an update{}", grouped(arm_.global_batch), as_base())
                         : fmt::format("{} examples in an update, within 2 % of {}",
                                       grouped(arm_.global_batch), base_name_));
    }
    if (const Pair* pair = breach(same_updates)) {
      const bool natural =
          breach([&](const Pair& p) { return same_updates(p) || natural_updates(p); }) == nullptr;
      std::string text =
          fmt::format("{}, {} made {}{}", updates_text(static_cast<double>(pair->ours().steps)), base_name_,
                      grouped(static_cast<double>(pair->theirs().steps)), excuse(*pair, natural));
      arm_.flags.push_back({"other-updates", text});
      const bool of_batch = of_.differs_allowed("batch") && breach(same_batch) != nullptr;
      // A run that ended early made fewer: the check of examples has told.
      const bool early = ended_by_same_limit(*pair);
      add("updates", natural || excused || of_batch || early, std::move(text), natural || early);
    } else {
      const Pair* off = breach([](const Pair& p) { return p.ours().steps == p.theirs().steps; });
      add("updates", true,
          off == nullptr ? updates_text(arm_.updates) + as_base()
                         : fmt::format("{}, within 2 % of {}", updates_text(arm_.updates), base_name_));
    }
  }

  /// Which model of a run is its result, and in which precision it computed.
  void selection() {
    if (const Pair* pair = breach([](const Pair& p) { return p.ours().keep == p.theirs().keep; })) {
      add("selection", false,
          fmt::format("its result is the {} model, that of {} the {}", pair->ours().keep, base_name_,
                      pair->theirs().keep));
    } else {
      add("selection", true, fmt::format("the {} model{}", pairs_[0].ours().keep, as_base()));
    }
    const bool subject = std::any_of(of_.sweep.axes.begin(), of_.sweep.axes.end(),
                                     [](const auto& axis) { return axis.ends_with("precision"); });
    const Pair* pair = breach([](const Pair& p) { return p.ours().precision == p.theirs().precision; });
    if (pair != nullptr && !subject)
      arm_.flags.push_back({"other-precision", fmt::format("computes in {}, {} in {}", pair->ours().precision,
                                                           base_name_, pair->theirs().precision)});
  }

  std::string as_base() const { return alone_ ? "" : ", as " + base_name_; }
  static std::string named(const std::string& name) { return name.empty() ? "nothing" : name; }
  static std::string about(const record::RunRecord& record) {
    return fmt::format("{}{}, {}", record.cpu.empty() ? "a processor that is not known" : record.cpu,
                       record.cores > 0 ? fmt::format(", {} cores", record.cores) : "", record.device);
  }

  void add_seedwise(const char* code, std::string record::RunRecord::*hash, const char* what) {
    if (alone_) return add(code, true, "the baseline's own");
    const auto seeds =
        std::count_if(pairs_.begin(), pairs_.end(), [](const Pair& pair) { return pair.same_seed; });
    if (seeds == 0)
      return add(code, true, fmt::format("no seed in common with {}: not compared", base_name_), false,
                 false);
    const bool recorded = std::any_of(pairs_.begin(), pairs_.end(), [&](const Pair& pair) {
      return pair.same_seed && !(pair.ours().*hash).empty() && !(pair.theirs().*hash).empty();
    });
    add(code, true, recorded ? fmt::format("{} as {}, seed by seed", what, base_name_) : kNotKnown, false,
        recorded);
  }

  inline static const std::string kNotKnown = "not known: the records do not say";
  Comparison& of_;
  size_t index_;
  ArmResult& arm_;
  std::string base_name_;
  bool alone_ = false, candidate_ = false;
  std::vector<Pair> pairs_;
};

}  // namespace

bool busy(double outside_load, int64_t cores) {
  // A quarter of a core is what an idle system's own services take; a machine of many cores has more of them.
  return outside_load > std::max(0.25, 0.05 * static_cast<double>(cores));
}

bool same_machine(const record::RunRecord& a, const record::RunRecord& b) {
  return (a.cpu.empty() || b.cpu.empty() || a.cpu == b.cpu) &&
         (a.cores == 0 || b.cores == 0 || a.cores == b.cores) && a.device == b.device;
}

size_t Comparison::control_of(size_t arm) const {
  const RunData* ours = any_done(arm);
  if (ours == nullptr) return kNone;
  const record::RunRecord& record = *ours->files->record;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const RunData* run : runs[i]) {
      if (run->kind != "control" || run->control_of != results.arms[arm].id || !run->done()) continue;
      const record::RunRecord& control = *run->files->record;
      if (close(batch_of(control), batch_of(record)) &&
          close(static_cast<double>(control.steps), static_cast<double>(record.steps)))
        return i;
    }
  }
  return kNone;
}

void check_fairness(Comparison& of) {
  for (size_t i = 0; i < of.results.arms.size(); ++i) ArmChecks(of, i).run();
  std::set<int64_t> tuned;
  for (const ArmResult& arm : of.results.arms) {
    if (arm.tuning && !arm.tuning->values.empty()) tuned.insert(arm.group);
  }
  for (ArmResult& arm : of.results.arms) {
    if (arm.kind == "row" && !arm.tuning && tuned.contains(arm.group))
      arm.flags.push_back(
          {"not-tuned",
           "its settings were not searched for, those of other arms were: it may be worse for that"});
  }
}

}  // namespace syncopate::report
