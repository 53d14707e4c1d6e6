#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/nn/model.h"
#include "syncopate/tensor/precision.h"

namespace syncopate::run {

/// Of `count` GPUs the one that is meant by "cuda:1" or, in turn, by "cuda"; none for "cpu". Throws
/// ConfigError for anything else, and where there is no such GPU.
std::optional<int64_t> gpu_number(const std::string& name, int local_rank, int64_t count);
/// "cpu", "cuda:1", or "cuda": of several GPUs the one that is `local_rank`'s, in turn. Throws ConfigError
/// for anything else, and where this machine or this libtorch has no such device.
c10::Device parse_device(const std::string& name, int local_rank = 0);
/// What this thread launches goes to that GPU from here on, and not to the first; nothing for a CPU.
void make_current(c10::Device device);
/// Whether some of this machine's `workers` compute on the same GPU.
bool share_a_gpu(const std::string& device, int workers);

/// For people and records: "cpu", "cuda:0".
std::string describe(c10::Device device);

/// The precision to compute in, and a sentence for the user where it is not the one asked for.
struct PrecisionChoice {
  tensor::Precision used = tensor::Precision::kFp32;
  std::string note;
};

/// What a rank found out about half precision on its CPU.
struct PrecisionTrial {
  std::string cpu;      ///< its name
  bool usable = false;  ///< it has the instructions, and what computes with them can be trusted
  double half = 0,
         whole = 0;  ///< seconds of a product in half precision and in fp32, the shortest of several
};

/// What follows from all ranks' trials: half precision where products in it are faster than in fp32 on every
/// CPU. Of ranks on the same kind of CPU the shortest times count: a rank that shares its core with another
/// program at that moment says nothing about the CPU.
PrecisionChoice judge(tensor::Precision asked, const std::vector<PrecisionTrial>& trials);

/// On a CPU half precision is used only where a trial shows that products in it are faster than in fp32:
/// without the instructions they are emulated (a hundred times slower), and some libraries die on them. The
/// products tried are those that `model` makes: ours or libtorch's.
PrecisionChoice choose_precision(tensor::Precision asked, c10::Device device, const nn::Model& model);

/// The same for all ranks: all use half precision or none. Collective; `asked` is alike on all.
PrecisionChoice agree_on_precision(tensor::Precision asked, c10::Device device, const nn::Model& model,
                                   comm::Group& group);

/// Moves parameters and buffers of a model that is not trained; FlatParams moves the parameters of one that
/// is.
void move_model(nn::Model& model, c10::Device device);
void move_buffers(nn::Model& model, c10::Device device);

}  // namespace syncopate::run
