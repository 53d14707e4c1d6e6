#include "syncopate/optim/clip.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "syncopate/optim/kernels.h"
#include "syncopate/tensor/parallel.h"

namespace syncopate::optim {

double gradient_norm(const at::Tensor& flat, double scale) {
  if (!flat.is_cpu() || flat.scalar_type() != at::kFloat) {
    return at::linalg_vector_norm(flat, 2, {}, false, at::kDouble).item<double>() * std::abs(scale);
  }
  const int64_t blocks = norm_blocks(flat.numel());
  std::vector<double> squares(static_cast<size_t>(blocks));
  squares_of_blocks(flat, 0, blocks, squares.data());
  return norm_of_blocks(squares.data(), blocks, scale);
}

void squares_of_blocks(const at::Tensor& flat, int64_t from, int64_t to, double* squares) {
  const int64_t count = flat.numel();
  const float* const data = flat.data_ptr<float>();
  tensor::parallel_for(from, to, 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kNormBlock;
      squares[block] = sum_of_squares(data + begin, std::min(kNormBlock, count - begin));
    }
  });
}

double norm_of_blocks(const double* squares, int64_t blocks, double scale) {
  const double total = std::accumulate(squares, squares + blocks, 0.0);
  return std::sqrt(total) * std::abs(scale);
}

double clip_factor(double norm, double limit) {
  if (limit <= 0 || norm <= limit) return 1;
  return limit / (norm + 1e-6);
}

}  // namespace syncopate::optim
