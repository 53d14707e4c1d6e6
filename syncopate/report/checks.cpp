// Fairness: each arm against the one that it is compared with.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

class ArmChecks {
 public:
  ArmChecks(Comparison& of, size_t arm) : of_(of), arm_(of.results.arms[arm]) {
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
    trained();
    examples();
    start();
    evaluation();
    data();
    machine();
    threads();
    batch_and_updates();
    arm_.excluded =
        std::any_of(arm_.checks.begin(), arm_.checks.end(), [](const Check& check) { return !check.ok; });
  }

 private:
  void add(const char* code, bool ok, std::string text, bool by_nature = false) {
    if (!ok && of_.differs_allowed(code)) {
      ok = true;
      text += "; the experiment says that this may differ";
    }
    arm_.checks.push_back({code, ok, std::move(text), by_nature});
  }

  /// The first pair for which it does not hold; null: it holds for all.
  template <typename Holds>
  const Pair* breach(const Holds& holds) const {
    const auto found = std::find_if_not(pairs_.begin(), pairs_.end(), holds);
    return found == pairs_.end() ? nullptr : &*found;
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
    const auto same = [](const Pair& pair) {
      const double batch = std::max({1.0, batch_of(pair.ours()), batch_of(pair.theirs())});
      return std::abs(static_cast<double>(pair.ours().examples - pair.theirs().examples)) <= batch;
    };
    if (const Pair* pair = breach(same)) {
      const auto early = [](const record::RunRecord& record) { return record.ended != "steps"; };
      const bool chosen = early(pair->ours()) || early(pair->theirs());
      std::string text = fmt::format("consumed {} examples in seed {}, {} consumed {}",
                                     grouped(static_cast<double>(pair->ours().examples)), pair->run->seed,
                                     base_name_, grouped(static_cast<double>(pair->theirs().examples)));
      if (chosen) {
        // Ended by the clock or by a plateau: how far it came is then a result, not a trick.
        text += fmt::format(", because {} ended by its {}", early(pair->ours()) ? "it" : base_name_,
                            early(pair->ours()) ? pair->ours().ended : pair->theirs().ended);
      }
      add("examples", chosen, std::move(text), chosen);
    } else {
      add("examples", true, fmt::format("{} examples{}", grouped(arm_.examples), as_base()));
    }
  }

  void start() {
    const auto same = [](const Pair& pair) {
      return !pair.same_seed || pair.ours().start_hash.empty() || pair.theirs().start_hash.empty() ||
             pair.ours().start_hash == pair.theirs().start_hash;
    };
    if (const Pair* pair = breach(same)) {
      const bool other_model = pair->ours().init_from != pair->theirs().init_from;
      add("start", other_model,
          other_model ? fmt::format("starts from {}, {} from {}", named(pair->ours().init_from), base_name_,
                                    named(pair->theirs().init_from))
                      : fmt::format("does not start from the same parameters as {} in seed {}", base_name_,
                                    pair->run->seed),
          other_model);
      return;
    }
    add("start", true, seedwise(&record::RunRecord::start_hash, "the same first parameters"));
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
    add("data", true, seedwise(&record::RunRecord::data_hash, "the same data"));
  }

  void machine() {
    const auto same_kind = [](const Pair& pair) {
      const record::RunRecord &ours = pair.ours(), &theirs = pair.theirs();
      return (ours.cpu.empty() || theirs.cpu.empty() || ours.cpu == theirs.cpu) &&
             (ours.cores == 0 || theirs.cores == 0 || ours.cores == theirs.cores) &&
             ours.device == theirs.device;
    };
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
      add("threads", true, count > 0 ? fmt::format("{} per worker{}", count, as_base()) : "not recorded");
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
             std::max<int64_t>(1, std::max(pair.ours().steps, pair.theirs().steps) / 50);
    };
    const auto by_nature = [](const Pair& pair) {
      return rhythm_of(pair.ours().strategy) != rhythm_of(pair.theirs().strategy);
    };
    const bool control = arm_.kind == "control";
    const bool controlled = has_control();
    const auto excuse = [&](const Pair& pair) {
      if (by_nature(pair)) return fmt::format(": so {} works", pair.ours().strategy);
      if (control) return std::string(": it is a control, made for that");
      if (controlled)
        return std::string(": its quality is compared with a control of the same batch and updates");
      return std::string();
    };
    if (const Pair* pair = breach(same_batch)) {
      const bool natural = by_nature(*pair);
      std::string text = fmt::format("{} examples in an update, {} has {}{}", grouped(batch_of(pair->ours())),
                                     base_name_, grouped(batch_of(pair->theirs())), excuse(*pair));
      arm_.flags.push_back({"other-batch", text});
      add("batch", natural || control || controlled, std::move(text), natural);
    } else {
      add("batch", true, fmt::format("{} examples in an update{}", grouped(arm_.global_batch), as_base()));
    }
    if (const Pair* pair = breach(same_updates)) {
      const bool natural = by_nature(*pair);
      std::string text =
          fmt::format("{} updates, {} made {}{}", grouped(static_cast<double>(pair->ours().steps)),
                      base_name_, grouped(static_cast<double>(pair->theirs().steps)), excuse(*pair));
      arm_.flags.push_back({"other-updates", text});
      const bool of_batch = of_.differs_allowed("batch") && breach(same_batch) != nullptr;
      // A run that ended early made fewer: the check of examples has told.
      const bool early = pair->ours().ended != "steps" || pair->theirs().ended != "steps";
      add("updates", natural || control || controlled || of_batch || early, std::move(text),
          natural || early);
    } else {
      add("updates", true, fmt::format("{} updates{}", grouped(arm_.updates), as_base()));
    }
  }

  bool has_control() const {
    for (size_t i = 0; i < of_.runs.size(); ++i) {
      for (const RunData* run : of_.runs[i]) {
        if (run->kind != "control" || run->control_of != arm_.id || !run->done()) continue;
        return close(batch_of(*run->files->record), batch_of(pairs_[0].ours())) &&
               close(static_cast<double>(run->files->record->steps),
                     static_cast<double>(pairs_[0].ours().steps));
      }
    }
    return false;
  }

  std::string as_base() const { return alone_ ? "" : ", as " + base_name_; }
  static std::string named(const std::string& name) { return name.empty() ? "nothing" : name; }
  static std::string about(const record::RunRecord& record) {
    return fmt::format("{}{}, {}", record.cpu.empty() ? "a processor that is not known" : record.cpu,
                       record.cores > 0 ? fmt::format(", {} cores", record.cores) : "", record.device);
  }

  std::string seedwise(std::string record::RunRecord::*hash, const char* what) const {
    if (alone_) return "the baseline's own";
    const auto seeds =
        std::count_if(pairs_.begin(), pairs_.end(), [](const Pair& pair) { return pair.same_seed; });
    if (seeds == 0) return fmt::format("no seed in common with {}: not compared", base_name_);
    const bool recorded = std::any_of(pairs_.begin(), pairs_.end(), [&](const Pair& pair) {
      return pair.same_seed && !(pair.ours().*hash).empty() && !(pair.theirs().*hash).empty();
    });
    return recorded ? fmt::format("{} as {}, seed by seed", what, base_name_) : "not recorded";
  }

  Comparison& of_;
  ArmResult& arm_;
  std::string base_name_;
  bool alone_ = false;
  std::vector<Pair> pairs_;
};

}  // namespace

bool busy(double outside_load, int64_t cores) {
  // A quarter of a core is what an idle system's own services take; a machine of many cores has more of them.
  return outside_load > std::max(0.25, 0.05 * static_cast<double>(cores));
}

void check_fairness(Comparison& of) {
  for (size_t i = 0; i < of.results.arms.size(); ++i) ArmChecks(of, i).run();
}

}  // namespace syncopate::report
