#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/nn/model.h"

namespace syncopate::parallel {

/// Throws ConfigError where a model of so many blocks cannot be cut into so many stages.
void require_blocks(int64_t blocks, int64_t stages);

/// Which layers each stage holds, given how many blocks it has: the first stage has layer 0, too, the last
/// one the last layer. Throws ConfigError where the blocks are not those of the model.
std::vector<nn::LayerRange> layers_of_stages(const nn::Model& model, const std::vector<int64_t>& blocks);

/// How many blocks each stage gets so that the slowest stage is as fast as it can be; of equals the one whose
/// last stages are lighter. `seconds` is a layer's forward and backward pass, for every layer of the model:
/// those of layer 0 and of the last layer count to the first and the last block.
std::vector<int64_t> balanced_cut(const std::vector<double>& seconds, int stages);

/// "3,5,4".
std::vector<int64_t> parse_cut(const std::string& text);
std::string cut_in_words(const std::vector<int64_t>& blocks);

}  // namespace syncopate::parallel
