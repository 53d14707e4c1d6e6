#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace syncopate::tensor {

/// What matrix products are computed in; parameters, gradients and sums stay fp32.
enum class Precision { kFp32, kBf16, kFp16 };

const std::vector<std::string>& precision_names();
Precision parse_precision(const std::string& name);  ///< throws ConfigError with a suggestion
const std::string& name_of(Precision precision);

/// For as long as it lives, operations of this thread on `device` compute in `precision` where that is safe:
/// libtorch's by its autocast, ours by asking cpu_precision(). Does nothing for fp32. On a CPU libtorch 1 is
/// left in fp32: its library for half precision dies on some of them.
class Autocast {
 public:
  Autocast(Precision precision, c10::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool active_;
  c10::DeviceType device_;
  bool was_enabled_ = false;
  Precision cpu_before_ = Precision::kFp32;
};

/// That of the Autocast of the CPU's operations which this thread is in; fp32 outside of any.
Precision cpu_precision();

}  // namespace syncopate::tensor
