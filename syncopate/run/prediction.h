#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/replica.h"
#include "syncopate/record/record.h"
#include "syncopate/run/placement.h"
#include "syncopate/run/probe/local_costs.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::run {

/// What a run's model exchanges.
struct ModelShape {
  std::vector<sim::ParameterProfile> parameters{};
  std::vector<size_t> tables{};  ///< of them: embeddings that are exchanged by rows
};
ModelShape shape_of(const parallel::Replica& replica);
/// That of each stage of a pipeline, at rank 0; elsewhere nothing. Collective.
std::vector<ModelShape> gather_shapes(const spec::RunSpec& spec, const parallel::Replica& replica,
                                      comm::Group& workers);

/// What a step of a run that is done was to take on its network: from the run's own compute and the embedding
/// rows that it read, what exchanges cost on this machine (measured now, in about a second) and the links.
/// Its bytes are not a prediction, since rows are found in them: NaN. None where a step's parts were not
/// measured, nothing was sent, or, with a note, what it needs could not be measured. Throws nothing: a run
/// that is done is not lost for it.
std::optional<record::PredictionRecord> predict_run(
    const spec::RunSpec& spec, const Placement& placement, const record::RunRecord& measured,
    const ModelShape& model, const std::function<sim::LocalCosts()>& local_costs = measure_local_costs);
std::optional<record::PredictionRecord> predict_run(const spec::RunSpec& spec, const Placement& placement,
                                                    const record::RunRecord& measured,
                                                    const parallel::Replica& replica);
/// The same of a model in stages, from what RunRecord::stages say they cost and sent.
std::optional<record::PredictionRecord> predict_run(
    const spec::RunSpec& spec, const Placement& placement, const record::RunRecord& measured,
    const std::vector<ModelShape>& stages,
    const std::function<sim::LocalCosts()>& local_costs = measure_local_costs);

}  // namespace syncopate::run
