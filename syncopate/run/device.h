#pragma once

#include <c10/core/Device.h>

#include <string>

#include "syncopate/comm/group.h"
#include "syncopate/nn/model.h"
#include "syncopate/tensor/precision.h"

namespace syncopate::run {

/// "cpu", "cuda" or "cuda:1". Throws ConfigError for anything else, and where this machine or this libtorch
/// has no such device.
c10::Device parse_device(const std::string& name);

/// For people and records: "cpu", "cuda:0".
std::string describe(c10::Device device);

/// The precision to compute in, and a sentence for the user where it is not the one asked for.
struct PrecisionChoice {
  tensor::Precision used = tensor::Precision::kFp32;
  std::string note;
};

/// On a CPU half precision is used only where a trial shows that products in it are right and faster than in
/// fp32: without the instructions they are emulated (a hundred times slower), and some libraries die on them.
PrecisionChoice choose_precision(tensor::Precision asked, c10::Device device);

/// The same for all ranks: the trial may come out otherwise on another one, and all use half precision or
/// none. Collective.
PrecisionChoice agree_on_precision(tensor::Precision asked, c10::Device device, comm::Group& group);

/// Moves parameters and buffers of a model that is not trained; FlatParams moves the parameters of one that
/// is.
void move_model(nn::Model& model, c10::Device device);
void move_buffers(nn::Model& model, c10::Device device);

}  // namespace syncopate::run
