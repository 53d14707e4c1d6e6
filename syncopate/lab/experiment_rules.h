#pragma once

#include "syncopate/lab/experiment.h"

// What holds between the arms and phases of one file, once each is read.
namespace syncopate::lab {

/// The same global batch for all where nobody gives one: that of the arm with the most workers.
void share_batch(Experiment& experiment);

/// What is compared trains and is tested on the same examples: where one arm holds some out for validation,
/// so do all of its task and data. Throws ConfigError where two say different things.
void share_validation(std::vector<Experiment::Arm>& arms);

/// Arms that those rules made alike in all but the seed are one. Throws ConfigError where they share a seed:
/// one of them would be lost.
void join_same(std::vector<Experiment::Arm>& arms);

/// Takes out runs of phases that nothing starts from, where others of the same phase are used. A phase that
/// no row uses at all stays, with what it starts from: somebody wants its model.
void drop_unused_phases(Experiment& experiment);

/// Throws ConfigError for more than `most` runs, finer tuning apart.
void require_few(const Experiment& experiment, int64_t most);

}  // namespace syncopate::lab
