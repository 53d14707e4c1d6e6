#pragma once

#include <string>
#include <vector>

#include "syncopate/comm/metering/metered.h"
#include "syncopate/parallel/engines/pipeline_engine.h"
#include "syncopate/record/record.h"
#include "syncopate/spec/run_spec.h"

// What a run's record says of its pipeline.
namespace syncopate::run {

record::PipelineRecord pipeline_record(const spec::RunSpec& spec, const std::string& cut);

/// What this rank's stage did. `step`: a mean step of this rank. `sent`: what it sent in `steps` steps of
/// this process.
record::StageRecord stage_record(const parallel::PipelineEngine& engine, const record::StepRecord& step,
                                 const comm::Meter& sent, int64_t steps);

/// The stages in order, each the mean over its replicas; at rank 0, elsewhere nothing. Collective.
std::vector<record::StageRecord> gather_stages(const spec::RunSpec& spec, const std::string& cut,
                                               comm::Group& workers, const record::StageRecord& mine);

/// Two sentences for people: the slowest stage, and how much of a step is waiting. Nothing without stages.
std::vector<std::string> stages_in_words(const std::vector<record::StageRecord>& stages);

}  // namespace syncopate::run
