#pragma once

#include <string>

#include "syncopate/nn/model.h"

namespace syncopate::nn {

/// A hash of all parameters and buffers by name, in hexadecimal: alike for every strategy and number of
/// workers.
std::string fingerprint(const Model& model);

}  // namespace syncopate::nn
