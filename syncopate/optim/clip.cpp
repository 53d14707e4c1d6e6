#include "syncopate/optim/clip.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "syncopate/optim/kernels.h"
#include "syncopate/tensor/parallel.h"

namespace syncopate::optim {

double gradient_norm(const at::Tensor& flat, double scale) {
  if (!flat.is_cpu() || flat.scalar_type() != at::kFloat) {
    return at::linalg_vector_norm(flat, 2, {}, false, at::kDouble).item<double>() * std::abs(scale);
  }
  constexpr int64_t kBlock = 1 << 16;
  const int64_t count = flat.numel();
  const float* const data = flat.data_ptr<float>();
  std::vector<double> sums(static_cast<size_t>((count + kBlock - 1) / kBlock));
  tensor::parallel_for(0, static_cast<int64_t>(sums.size()), 1, [&](int64_t from, int64_t to) {
    for (int64_t block = from; block < to; ++block) {
      const int64_t begin = block * kBlock;
      sums[static_cast<size_t>(block)] = sum_of_squares(data + begin, std::min(kBlock, count - begin));
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total) * std::abs(scale);
}

double clip_factor(double norm, double limit) {
  if (limit <= 0 || norm <= limit) return 1;
  return limit / (norm + 1e-6);
}

}  // namespace syncopate::optim
