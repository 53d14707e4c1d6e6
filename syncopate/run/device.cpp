#include "syncopate/run/device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/nn/kernels/kernels.h"
#include "syncopate/nn/layers/product.h"
#include "syncopate/run/compute.h"

namespace syncopate::run {
namespace {

/// Who multiplies in half precision on a CPU.
enum class Multiplier { kOurs, kLibtorch };

Multiplier multiplier_of(const nn::Model& model) {
  return model.own_products() ? Multiplier::kOurs : Multiplier::kLibtorch;
}

/// Whether this CPU has instructions for products of this type, and whoever multiplies can be trusted with
/// them.
bool has_instructions(tensor::Precision precision, Multiplier by) {
  if (precision != tensor::Precision::kBf16) return false;  // fp16 is emulated
  if (by == Multiplier::kOurs) return nn::kernels::kernels().half;
#if defined(__x86_64__) && TORCH_VERSION_MAJOR >= 2
  return __builtin_cpu_supports("avx512bf16");
#else
  // Debian's oneDNN (libtorch 1.13) dies on AMX and is slower than fp32 with AVX-512's bf16.
  return false;
#endif
}

/// Seconds of a product of two equal matrices.
double product_seconds(const at::Tensor& a, tensor::Precision ours) {
  const Stopwatch watch;
  nn::product(a, a, ours);
  return watch.seconds();
}

PrecisionTrial try_out(tensor::Precision precision, c10::Device device, Multiplier by) {
  if (!device.is_cpu()) return {.cpu = describe(device), .usable = true, .half = 0, .whole = 1};
  PrecisionTrial trial{.cpu = cpu_name(), .usable = has_instructions(precision, by)};
  if (!trial.usable) return trial;
  constexpr auto kFp32 = tensor::Precision::kFp32;
  const bool ours = by == Multiplier::kOurs;
  const at::Tensor whole = at::ones({512, 512}, at::kFloat), half = ours ? whole : whole.to(at::kBFloat16);
  const tensor::Precision half_by = ours ? precision : kFp32;
  product_seconds(whole, kFp32);
  product_seconds(half, half_by);
  trial.whole = trial.half = std::numeric_limits<double>::infinity();
  // In turns, and the shortest: whatever else runs here makes some longer, and none shorter.
  for (int i = 0; i < 8; ++i) {
    trial.whole = std::min(trial.whole, product_seconds(whole, kFp32));
    trial.half = std::min(trial.half, product_seconds(half, half_by));
  }
  return trial;
}

}  // namespace

std::optional<int64_t> gpu_number(const std::string& name, int local_rank, int64_t count) {
  if (name == "cpu") return std::nullopt;
  std::optional<int64_t> asked;
  const std::string_view text = name;
  if (text.starts_with("cuda:")) asked = parse_integer(text.substr(5));
  if (name != "cuda" && (!asked || *asked < 0))
    throw ConfigError("--device must be cpu, cuda or cuda:NUMBER, got \"{}\"", name);
  if (count == 0) {
    throw ConfigError(
        "--device {} asks for a GPU, but there is none that this libtorch ({}) can use; use --device cpu or "
        "build against a libtorch with CUDA",
        name, TORCH_VERSION);
  }
  const int64_t index = asked ? *asked : local_rank % count;
  if (index >= count) {
    throw ConfigError("--device {} does not exist: this machine has {} GPU{}", name, count,
                      count == 1 ? "" : "s");
  }
  return index;
}

c10::Device parse_device(const std::string& name, int local_rank) {
  const bool asks = name != "cpu";
  const int64_t count = asks && at::hasCUDA() ? at::detail::getCUDAHooks().getNumGPUs() : 0;
  const std::optional<int64_t> index = gpu_number(name, local_rank, count);
  if (!index) return c10::kCPU;
  at::globalContext().setAllowTF32CuDNN(false);  // fp32 is fp32; who wants less asks for bf16
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5)
  // cuDNN makes a plan for every new length of texts, two seconds each; the other kernels need none.
  at::globalContext().setSDPUseCuDNN(false);
#endif
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(*index)};
}

void make_current(c10::Device device) {
  if (device.is_cuda()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

bool share_a_gpu(const std::string& device, int workers) {
  if (device == "cpu" || workers < 2) return false;
  return device != "cuda" || workers > at::detail::getCUDAHooks().getNumGPUs();
}

std::string describe(c10::Device device) { return device.str(); }

PrecisionChoice judge(tensor::Precision asked, const std::vector<PrecisionTrial>& trials) {
  std::map<std::string, PrecisionTrial> by_cpu;
  for (const PrecisionTrial& trial : trials) {
    PrecisionTrial& best = by_cpu.try_emplace(trial.cpu, trial).first->second;
    best.usable = best.usable && trial.usable;
    best.half = std::min(best.half, trial.half);
    best.whole = std::min(best.whole, trial.whole);
  }
  for (const auto& [cpu, trial] : by_cpu) {
    const std::string name = tensor::name_of(asked), where = by_cpu.size() == 1 ? "this CPU" : cpu;
    if (!trial.usable) {
      return {tensor::Precision::kFp32,
              fmt::format("{} products would be slower than fp32 on {} with this libtorch ({}): computing in "
                          "fp32",
                          name, where, TORCH_VERSION)};
    }
    if (trial.half >= trial.whole) {
      return {tensor::Precision::kFp32,
              fmt::format("{} products take {:.1f} times as long as fp32 on {}: computing in fp32", name,
                          trial.half / trial.whole, where)};
    }
  }
  return {asked, ""};
}

PrecisionChoice choose_precision(tensor::Precision asked, c10::Device device, const nn::Model& model) {
  if (asked == tensor::Precision::kFp32) return {asked, ""};
  return judge(asked, {try_out(asked, device, multiplier_of(model))});
}

void move_buffers(nn::Model& model, c10::Device device) {
  for (const auto& [name, buffer] : model.buffers()) at::Tensor(buffer).set_data(buffer.to(device));
}

PrecisionChoice agree_on_precision(tensor::Precision asked, c10::Device device, const nn::Model& model,
                                   comm::Group& group) {
  if (asked == tensor::Precision::kFp32) return {asked, ""};
  const PrecisionTrial mine = try_out(asked, device, multiplier_of(model));
  const std::string told = nlohmann::json{mine.cpu, mine.usable, mine.half, mine.whole}.dump();
  std::vector<PrecisionTrial> all;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto said = nlohmann::json::parse(comm::broadcast_text(group, told, rank));
    all.push_back({.cpu = said.at(0), .usable = said.at(1), .half = said.at(2), .whole = said.at(3)});
  }
  return judge(asked, all);
}

void move_model(nn::Model& model, c10::Device device) {
  for (const auto& [name, parameter] : model.parameters())
    at::Tensor(parameter).set_data(parameter.detach().to(device));
  move_buffers(model, device);
}

}  // namespace syncopate::run
