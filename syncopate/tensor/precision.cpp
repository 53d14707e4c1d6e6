#include "syncopate/tensor/precision.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::tensor {
namespace {

// One interface over two libraries: before 2.4 each device had functions of its own.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
bool enabled(c10::DeviceType device) { return at::autocast::is_autocast_enabled(device); }
void enable(c10::DeviceType device, bool on) { at::autocast::set_autocast_enabled(device, on); }
void set_type(c10::DeviceType device, at::ScalarType type) { at::autocast::set_autocast_dtype(device, type); }
#else
bool enabled(c10::DeviceType device) {
  return device == c10::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}
void enable(c10::DeviceType device, bool on) {
  device == c10::kCPU ? at::autocast::set_cpu_enabled(on) : at::autocast::set_enabled(on);
}
void set_type(c10::DeviceType device, at::ScalarType type) {
  device == c10::kCPU ? at::autocast::set_autocast_cpu_dtype(type)
                      : at::autocast::set_autocast_gpu_dtype(type);
}
#endif

bool libtorch_casts(c10::DeviceType device) { return device != c10::kCPU || TORCH_VERSION_MAJOR >= 2; }

thread_local Precision precision_of_cpu = Precision::kFp32;

}  // namespace

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> kNames{"fp32", "bf16", "fp16"};
  return kNames;
}

Precision parse_precision(const std::string& name) {
  const auto& names = precision_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw ConfigError("unknown precision \"{}\"{}", name, suggestion(name, names));
  return static_cast<Precision>(found - names.begin());
}

const std::string& name_of(Precision precision) { return precision_names()[static_cast<size_t>(precision)]; }

Precision cpu_precision() { return precision_of_cpu; }

Autocast::Autocast(Precision precision, c10::Device device)
    : active_(precision != Precision::kFp32), device_(device.type()) {
  if (!active_) return;
  cpu_before_ = precision_of_cpu;
  if (device_ == c10::kCPU) precision_of_cpu = precision;
  if (!libtorch_casts(device_)) return;
  was_enabled_ = enabled(device_);
  set_type(device_, precision == Precision::kBf16 ? at::kBFloat16 : at::kHalf);
  at::autocast::increment_nesting();
  enable(device_, true);
}

Autocast::~Autocast() {
  if (!active_) return;
  precision_of_cpu = cpu_before_;
  if (!libtorch_casts(device_)) return;
  // Weights cast once are kept for the region: after it they change.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  enable(device_, was_enabled_);
}

}  // namespace syncopate::tensor
