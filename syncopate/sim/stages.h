#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/sim/profile.h"
#include "syncopate/spec/run_spec.h"

// What the stages of a model in a pipeline hold and cost.
namespace syncopate::sim {

/// One stage and one micro-batch. Seconds are of a device of speed 1.
struct StageCost {
  double forward_s = 0, backward_s = 0;
  double pack_s = 0, unpack_s = 0;                    ///< activations that leave, that come
  double pack_gradient_s = 0, unpack_gradient_s = 0;  ///< their gradients
  double forward_bytes = 0, backward_bytes = 0;       ///< sent to the next stage, to the one before
};

/// How many blocks each stage gets: as pipeline.cut says, or so that the slowest is as fast as can be. Throws
/// ConfigError for more stages than blocks, or another number of them.
std::vector<size_t> blocks_of_stages(const spec::RunSpec& spec, const std::vector<LayerProfile>& blocks);

/// How many blocks each stage gets so that the longest stage is as short as it can be; of equals the one
/// whose last stages are lighter. Throws ConfigError for more stages than blocks.
std::vector<size_t> balanced_layers(const std::vector<LayerProfile>& blocks, size_t stages);

/// What each stage of the spec costs, by a profile of the whole model. Codecs that remember examples are seen
/// behind first visits.
std::vector<StageCost> stage_costs(const spec::RunSpec& spec, const Profile& profile);

/// The parameters of each stage with when they are ready within its own backward pass; a profile that does
/// not know them has one for each block.
std::vector<std::vector<ParameterProfile>> stage_parameters(const spec::RunSpec& spec,
                                                            const Profile& profile);

}  // namespace syncopate::sim
