#include "syncopate/tensor/image_levels.h"

#include <ATen/ATen.h>

#include "syncopate/base/error.h"

namespace syncopate::tensor {

at::Tensor image_levels(const std::vector<double>& mean, const std::vector<double>& deviation) {
  check(mean.size() == deviation.size(), "a normalisation has a mean and a deviation per channel");
  constexpr int kBytes = 256;
  at::Tensor levels = at::empty({static_cast<int64_t>(mean.size()), kBytes}, at::kFloat);
  float* into = levels.data_ptr<float>();
  for (size_t channel = 0; channel < mean.size(); ++channel) {
    for (int byte = 0; byte < kBytes; ++byte)
      *into++ = static_cast<float>((static_cast<double>(byte) / 255 - mean[channel]) / deviation[channel]);
  }
  return levels;
}

}  // namespace syncopate::tensor
