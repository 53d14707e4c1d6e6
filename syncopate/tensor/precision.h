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

/// For as long as it lives, operations of this thread on `device` compute in `precision` where that is safe
/// (libtorch's autocast). Does nothing for fp32.
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
};

/// Whether this thread is inside an Autocast of the CPU's operations.
bool casts_on_cpu();

}  // namespace syncopate::tensor
