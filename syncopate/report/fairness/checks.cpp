// Fairness: each arm against the one that it is compared with.
#include <set>

#include "syncopate/report/fairness/questions.h"

namespace syncopate::report {
namespace {

void check_arm(Comparison& of, size_t arm) {
  ArmChecks checks(of, arm);
  if (checks.pairs().empty()) return;
  check_network(checks);
  if (checks.arm().simulated) {
    checks.add("trained", true, "simulated: nothing was trained, so there is nothing to check", false, false);
    return;
  }
  check_trained(checks);
  check_examples(checks);
  check_start(checks);
  check_evaluation(checks);
  check_data(checks);
  check_machine(checks);
  check_threads(checks);
  check_batch_and_updates(checks);
  check_selection(checks);
  tell_early_ends(checks);
  checks.conclude();
}

}  // namespace

void check_fairness(Comparison& of) {
  for (size_t i = 0; i < of.results.arms.size(); ++i) check_arm(of, i);
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
