#include "syncopate/run/device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::run {
namespace {

/// Whether this CPU has instructions for products of this type, and this libtorch can be trusted with them.
bool has_instructions(tensor::Precision precision) {
#if defined(__x86_64__) && TORCH_VERSION_MAJOR >= 2
  if (precision == tensor::Precision::kBf16) {
    // The compiler's names for amx-bf16 came with GCC 13.
    return __builtin_cpu_supports("avx512bf16");
  }
#endif
  // Debian's oneDNN (libtorch 1.13) dies on AMX and is slower than fp32 with AVX-512's bf16; fp16 is
  // emulated.
  (void)precision;
  return false;
}

double product_seconds(at::ScalarType type) {
  const at::Tensor a = at::ones({512, 512}, type), b = at::ones({512, 512}, type);
  at::mm(a, b);
  const Stopwatch watch;
  for (int i = 0; i < 3; ++i) at::mm(a, b);
  return watch.seconds();
}

}  // namespace

c10::Device parse_device(const std::string& name) {
  if (name == "cpu") return c10::kCPU;
  const std::string_view text = name;
  int64_t index = 0;
  if (text.starts_with("cuda:")) {
    const auto number = parse_integer(text.substr(5));
    if (!number || *number < 0)
      throw ConfigError("--device must be cpu, cuda or cuda:NUMBER, got \"{}\"", name);
    index = *number;
  } else if (name != "cuda") {
    throw ConfigError("--device must be cpu, cuda or cuda:NUMBER, got \"{}\"", name);
  }
  if (!at::hasCUDA()) {
    throw ConfigError(
        "--device {} asks for a GPU, but there is none that this libtorch ({}) can use; use --device cpu or "
        "build against a libtorch with CUDA",
        name, TORCH_VERSION);
  }
  const int64_t count = at::detail::getCUDAHooks().getNumGPUs();
  if (index >= count) {
    throw ConfigError("--device {} does not exist: this machine has {} GPU{}", name, count,
                      count == 1 ? "" : "s");
  }
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5)
  // cuDNN makes a plan for every new length of texts, two seconds each; the other kernels need none.
  at::globalContext().setSDPUseCuDNN(false);
#endif
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

std::string describe(c10::Device device) { return device.str(); }

PrecisionChoice choose_precision(tensor::Precision asked, c10::Device device) {
  if (asked == tensor::Precision::kFp32 || !device.is_cpu()) return {asked, ""};
  const std::string name = tensor::name_of(asked);
  if (!has_instructions(asked)) {
    return {
        tensor::Precision::kFp32,
        fmt::format("{} products would be slower than fp32 on this CPU with this libtorch ({}): computing in "
                    "fp32",
                    name, TORCH_VERSION)};
  }
  const double half = product_seconds(asked == tensor::Precision::kBf16 ? at::kBFloat16 : at::kHalf);
  const double whole = product_seconds(at::kFloat);
  if (half < whole) return {asked, ""};
  return {tensor::Precision::kFp32,
          fmt::format("{} products take {:.1f} times as long as fp32 on this CPU: computing in fp32", name,
                      half / whole)};
}

void move_buffers(nn::Model& model, c10::Device device) {
  for (const auto& [name, buffer] : model.buffers()) at::Tensor(buffer).set_data(buffer.to(device));
}

PrecisionChoice agree_on_precision(tensor::Precision asked, c10::Device device, comm::Group& group) {
  PrecisionChoice choice = choose_precision(asked, device);
  at::Tensor refused = at::full({1}, choice.used == asked ? 0.0 : 1.0, at::kDouble);
  group.all_reduce(refused, comm::Op::kMax).wait();
  if (refused.item<double>() == 0) return choice;
  if (choice.used == asked)
    choice.note = "another worker's CPU is slower in half precision: computing in fp32";
  choice.used = tensor::Precision::kFp32;
  return choice;
}

void move_model(nn::Model& model, c10::Device device) {
  for (const auto& [name, parameter] : model.parameters())
    at::Tensor(parameter).set_data(parameter.detach().to(device));
  move_buffers(model, device);
}

}  // namespace syncopate::run
