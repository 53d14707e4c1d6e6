// How often an arm updates by how large a batch, and which model comes out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "syncopate/report/fairness/questions.h"
#include "syncopate/report/traits.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

std::string updates_text(double count) { return count == 1 ? "1 update" : grouped(count) + " updates"; }

bool runs_free(const record::RunRecord& record) { return rhythm_of(record.strategy) == spec::Rhythm::kFree; }

/// By how much more often, and by smaller batches, a run updates only because its workers run free.
double freedom_of(const record::RunRecord& record) {
  return runs_free(record) ? static_cast<double>(std::max<int64_t>(1, record.workers)) : 1;
}

/// Whether it is one worker that others may be compared with.
bool is_candidate(const ArmChecks& checks) {
  const std::vector<size_t>& candidates = checks.comparison().candidates;
  return checks.arm().workers == 1 &&
         std::find(candidates.begin(), candidates.end(), checks.index()) != candidates.end();
}

}  // namespace

void check_batch_and_updates(ArmChecks& checks) {
  const auto same_batch = [](const RunPair& pair) {
    return nearly_equal(batch_of(pair.ours()), batch_of(pair.theirs()));
  };
  const auto same_updates = [](const RunPair& pair) {
    return std::abs(pair.ours().steps - pair.theirs().steps) <=
           std::max(pair.ours().steps, pair.theirs().steps) / 50;
  };
  // Workers that run free update with their own share of a batch, each as often as others do together. The
  // share is whole, so its product may be a little off.
  const auto free = [](const RunPair& pair) { return runs_free(pair.ours()) || runs_free(pair.theirs()); };
  const auto natural_batch = [&](const RunPair& pair) {
    const double share = batch_of(pair.theirs()) * freedom_of(pair.theirs()) / freedom_of(pair.ours());
    return free(pair) && std::abs(batch_of(pair.ours()) - share) < 1;
  };
  const auto natural_updates = [&](const RunPair& pair) {
    const double rounds = static_cast<double>(pair.theirs().steps) / freedom_of(pair.theirs());
    const double ours = static_cast<double>(pair.ours().steps) / freedom_of(pair.ours());
    return free(pair) && (nearly_equal(ours, rounds) || std::abs(ours - rounds) < 1);
  };
  const bool control = checks.arm().kind == "control";
  const bool controlled = checks.comparison().control_of(checks.index()) != Comparison::kNone;
  const bool candidate = is_candidate(checks);
  const auto excuse = [&](const RunPair& pair, bool natural) {
    if (natural) return fmt::format(": so {} works", pair.ours().strategy);
    if (control) return std::string(": it is a control, made for that");
    if (controlled)
      return std::string(": its quality is compared with a control of the same batch and updates");
    if (candidate) return std::string(": it is the baseline of arms that are like it");
    return std::string();
  };
  const bool excused = control || controlled || candidate;
  if (const RunPair* pair = checks.breach(same_batch)) {
    const bool natural = checks.for_all([&](const RunPair& p) { return same_batch(p) || natural_batch(p); });
    std::string text =
        fmt::format("{} examples in an update, {} has {}{}", grouped(batch_of(pair->ours())),
                    checks.base_name(), grouped(batch_of(pair->theirs())), excuse(*pair, natural));
    checks.flag("other-batch", text);
    checks.add("batch", natural || excused, std::move(text), natural);
  } else {
    const RunPair* off =
        checks.breach([](const RunPair& p) { return batch_of(p.ours()) == batch_of(p.theirs()); });
    checks.add("batch", true,
               off == nullptr ? fmt::format("{} examples in an update{}", grouped(checks.arm().global_batch),
                                            checks.as_base())
                              : fmt::format("{} examples in an update, within 2 % of {}",
                                            grouped(checks.arm().global_batch), checks.base_name()));
  }
  if (const RunPair* pair = checks.breach(same_updates)) {
    const bool natural =
        checks.for_all([&](const RunPair& p) { return same_updates(p) || natural_updates(p); });
    std::string text = fmt::format("{}, {} made {}{}", updates_text(static_cast<double>(pair->ours().steps)),
                                   checks.base_name(), grouped(static_cast<double>(pair->theirs().steps)),
                                   excuse(*pair, natural));
    checks.flag("other-updates", text);
    const bool of_batch = checks.comparison().differs_allowed("batch") && !checks.for_all(same_batch);
    // A run that ended early made fewer: the check of examples has told.
    const bool early = ended_by_same_limit(*pair);
    checks.add("updates", natural || excused || of_batch || early, std::move(text), natural || early);
  } else {
    const RunPair* off = checks.breach([](const RunPair& p) { return p.ours().steps == p.theirs().steps; });
    checks.add("updates", true,
               off == nullptr ? updates_text(checks.arm().updates) + checks.as_base()
                              : fmt::format("{}, within 2 % of {}", updates_text(checks.arm().updates),
                                            checks.base_name()));
  }
}

void check_selection(ArmChecks& checks) {
  if (const RunPair* pair =
          checks.breach([](const RunPair& p) { return p.ours().keep == p.theirs().keep; })) {
    checks.add("selection", false,
               fmt::format("its result is the {} model, that of {} the {}", pair->ours().keep,
                           checks.base_name(), pair->theirs().keep));
  } else {
    checks.add("selection", true,
               fmt::format("the {} model{}", checks.pairs()[0].ours().keep, checks.as_base()));
  }
  const bool subject =
      std::any_of(checks.comparison().sweep.axes.begin(), checks.comparison().sweep.axes.end(),
                  [](const auto& axis) { return axis.ends_with("precision"); });
  const RunPair* pair =
      checks.breach([](const RunPair& p) { return p.ours().precision == p.theirs().precision; });
  if (pair != nullptr && !subject)
    checks.flag("other-precision", fmt::format("computes in {}, {} in {}", pair->ours().precision,
                                               checks.base_name(), pair->theirs().precision));
}

}  // namespace syncopate::report
