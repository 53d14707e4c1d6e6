// Where an arm starts, what it learns from and what it is tested on.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "syncopate/report/fairness/questions.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

void add_seedwise(ArmChecks& checks, const char* code, std::string record::RunRecord::*hash,
                  const char* what) {
  if (checks.alone()) return checks.add(code, true, "the baseline's own");
  const auto seeds = std::count_if(checks.pairs().begin(), checks.pairs().end(),
                                   [](const RunPair& pair) { return pair.same_seed; });
  if (seeds == 0)
    return checks.add(code, true, fmt::format("no seed in common with {}: not compared", checks.base_name()),
                      false, false);
  const bool recorded = std::any_of(checks.pairs().begin(), checks.pairs().end(), [&](const RunPair& pair) {
    return pair.same_seed && !(pair.ours().*hash).empty() && !(pair.theirs().*hash).empty();
  });
  checks.add(code, true,
             recorded ? fmt::format("{} as {}, seed by seed", what, checks.base_name()) : kNotKnown, false,
             recorded);
}

/// Whether the run or folder is a phase of the experiment.
bool is_phase(const Comparison& of, const std::string& init_from) {
  if (init_from.empty()) return true;
  const std::filesystem::path path = std::filesystem::path(init_from).lexically_normal();
  return std::any_of(of.sweep.runs.begin(), of.sweep.runs.end(), [&](const RunData& run) {
    const std::filesystem::path folder(run.folder);
    return run.kind == "phase" && std::find(path.begin(), path.end(), folder) != path.end();
  });
}

}  // namespace

void check_start(ArmChecks& checks) {
  const auto same = [](const RunPair& pair) {
    if (!pair.same_seed) return true;
    if (pair.ours().start_hash.empty() || pair.theirs().start_hash.empty())
      return pair.ours().init_from == pair.theirs().init_from;
    return pair.ours().start_hash == pair.theirs().start_hash;
  };
  if (const RunPair* pair = checks.breach(same)) {
    const std::string &ours = pair->ours().init_from, &theirs = pair->theirs().init_from;
    if (ours == theirs) {
      checks.add("start", false,
                 fmt::format("does not start from the same parameters as {} in seed {}", checks.base_name(),
                             pair->run->seed));
      return;
    }
    // What a phase of the experiment trained is its subject; any other head start is none of it.
    const bool phase = is_phase(checks.comparison(), ours) && is_phase(checks.comparison(), theirs);
    const std::string text =
        fmt::format("starts from {}, {} from {}", or_nothing(ours), checks.base_name(), or_nothing(theirs));
    checks.flag("other-start", text);
    checks.add("start", phase, text, phase);
    return;
  }
  add_seedwise(checks, "start", &record::RunRecord::start_hash, "the same first parameters");
}

void check_evaluation(ArmChecks& checks) {
  const auto same = [](const RunPair& pair) {
    const record::RunRecord &ours = pair.ours(), &theirs = pair.theirs();
    // The hash is of what the model reads: a vocabulary of another seed's training examples changes it.
    if (pair.same_seed && !ours.test_hash.empty() && !theirs.test_hash.empty() &&
        ours.test_hash != theirs.test_hash)
      return false;
    if (ours.eval.has_value() != theirs.eval.has_value()) return false;
    return !ours.eval || ours.eval->examples == theirs.eval->examples;
  };
  if (const RunPair* pair = checks.breach(same)) {
    const auto count = [](const record::RunRecord& record) {
      return record.eval ? grouped(static_cast<double>(record.eval->examples)) : std::string("no");
    };
    const bool other_count = count(pair->ours()) != count(pair->theirs());
    checks.add("evaluation", false,
               other_count ? fmt::format("tested on {} examples, {} on {}", count(pair->ours()),
                                         checks.base_name(), count(pair->theirs()))
                           : fmt::format("not tested on the same examples as {}", checks.base_name()));
    return;
  }
  const auto& eval = checks.pairs()[0].ours().eval;
  checks.add(
      "evaluation", true,
      eval ? fmt::format("{} test examples{}", grouped(static_cast<double>(eval->examples)), checks.as_base())
           : "nothing is tested");
}

void check_data(ArmChecks& checks) {
  const auto same = [](const RunPair& pair) {
    return !pair.same_seed || pair.ours().data_hash.empty() || pair.theirs().data_hash.empty() ||
           pair.ours().data_hash == pair.theirs().data_hash;
  };
  if (const RunPair* pair = checks.breach(same)) {
    checks.add("data", false,
               fmt::format("not the same data as {} in seed {}", checks.base_name(), pair->run->seed));
    return;
  }
  add_seedwise(checks, "data", &record::RunRecord::data_hash, "the same data");
}

}  // namespace syncopate::report
