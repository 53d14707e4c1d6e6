// How much an arm trained, and whether it learned anything.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "syncopate/base/text.h"
#include "syncopate/report/fairness/questions.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

bool ended_early(const record::RunRecord& record) { return record.ended != "steps"; }

/// What it says about when to end before its steps are made; 0: nothing.
double limit_of(const RunData& run, const std::string& ended) {
  return parse_number(run.files->setting(ended == "time limit" ? "train.time_limit" : "train.patience"))
      .value_or(0);
}

}  // namespace

bool ended_by_same_limit(const RunPair& pair) {
  bool early = false;
  for (const record::RunRecord* record : {&pair.ours(), &pair.theirs()}) {
    if (!ended_early(*record)) continue;
    const double limit = limit_of(*pair.run, record->ended);
    if (!(limit > 0) || limit != limit_of(*pair.base, record->ended)) return false;
    early = true;
  }
  return early;
}

void check_trained(ArmChecks& checks) {
  size_t nothing = 0, no_lower = 0, known = 0;
  for (const RunPair& pair : checks.pairs()) {
    const RunFiles& files = *pair.run->files;
    if (pair.ours().steps == 0 || pair.ours().examples == 0) ++nothing;
    // A few steps say nothing: their losses differ by the luck of their batches.
    if (files.recorded_steps < 20 || !std::isfinite(files.first_loss)) continue;
    ++known;
    if (!(files.last_loss < files.first_loss)) ++no_lower;
  }
  if (nothing > 0) {
    checks.add("trained", false,
               fmt::format("{} of {} runs trained on nothing: 0 steps or 0 examples", nothing,
                           checks.pairs().size()));
  } else if (known > 0 && no_lower == known) {
    const RunFiles& files = *checks.pairs()[0].run->files;
    checks.add("trained", false,
               fmt::format("its loss did not fall: {:.3f} at the start, {:.3f} at the end", files.first_loss,
                           files.last_loss));
  } else {
    checks.add("trained", true, known > 0 ? "its loss fell" : "too few steps to see whether its loss fell");
  }
}

void check_examples(ArmChecks& checks) {
  const auto apart = [](const RunPair& pair) {
    return std::abs(static_cast<double>(pair.ours().examples - pair.theirs().examples));
  };
  // The rest of a batch, where that is little.
  const auto same = [&](const RunPair& pair) {
    const double batch = std::max(batch_of(pair.ours()), batch_of(pair.theirs()));
    const auto most = static_cast<double>(std::max(pair.ours().examples, pair.theirs().examples));
    return apart(pair) <= std::min(batch, 0.02 * most);
  };
  const auto told = [&](const RunPair& pair) {
    return fmt::format("consumed {} examples in seed {}, {} consumed {}",
                       grouped(static_cast<double>(pair.ours().examples)), pair.run->seed, checks.base_name(),
                       grouped(static_cast<double>(pair.theirs().examples)));
  };
  if (const RunPair* pair = checks.breach(same)) {
    // Ended by the clock or by a plateau, as the other could have: how far it came is then a result.
    const bool chosen = ended_by_same_limit(*pair);
    std::string text = told(*pair);
    if (const bool ours = ended_early(pair->ours()); ours || ended_early(pair->theirs())) {
      text += fmt::format(", because {} ended by its {}", ours ? "it" : checks.base_name(),
                          ours ? pair->ours().ended : pair->theirs().ended);
      if (!chosen) text += ", and the two do not have the same limit";
    }
    checks.add("examples", chosen, std::move(text), chosen);
  } else if (const RunPair* rest = checks.breach([&](const RunPair& each) { return apart(each) == 0; })) {
    checks.add("examples", true, told(*rest) + ": less than a batch and 2 % apart");
  } else {
    checks.add("examples", true,
               fmt::format("{} examples{}", grouped(checks.arm().examples), checks.as_base()));
  }
}

void tell_early_ends(ArmChecks& checks) {
  std::vector<std::string> seeds;
  std::string how;
  for (const RunPair& pair : checks.pairs()) {
    if (!ended_early(pair.ours())) continue;
    seeds.push_back(std::to_string(pair.run->seed));
    how = pair.ours().ended;
  }
  if (seeds.empty()) return;
  checks.flag("ended-early", fmt::format("{} ended by {} {}, before all steps were made", seeds_named(seeds),
                                         how == "plateau" ? "a" : "the", how));
}

}  // namespace syncopate::report
