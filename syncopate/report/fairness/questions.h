#pragma once

#include "syncopate/report/fairness/arm_checks.h"

// The questions of fairness. Each adds what it finds to the checks and flags of an arm that has a finished
// run.
namespace syncopate::report {

// training.cpp: how much it trained
void check_trained(ArmChecks& checks);
void check_examples(ArmChecks& checks);
void tell_early_ends(ArmChecks& checks);
/// Whether one of them ended early, by a limit that both have.
bool ended_by_same_limit(const RunPair& pair);

// material.cpp: where it starts, what it learns from and is tested on
void check_start(ArmChecks& checks);
void check_evaluation(ArmChecks& checks);
void check_data(ArmChecks& checks);

// machine.cpp: what it ran on
void check_network(ArmChecks& checks);  ///< speeds on other networks are another question, and no unfairness
void check_machine(ArmChecks& checks);
void check_threads(ArmChecks& checks);

// updates.cpp: how it updates, and which model comes out
void check_batch_and_updates(ArmChecks& checks);
/// Which model of a run is its result, and in which precision it computed.
void check_selection(ArmChecks& checks);

}  // namespace syncopate::report
