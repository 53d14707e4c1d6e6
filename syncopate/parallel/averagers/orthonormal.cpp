#include "syncopate/parallel/averagers/orthonormal.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "syncopate/base/rng.h"
#include "syncopate/gpu/orthonormal.h"

namespace syncopate::parallel {
namespace {

/// As many partial sums as a GPU has threads for it, then halves added to halves.
double dot(const double* a, const double* b, int64_t count) {
  constexpr int64_t kLanes = 256;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) lanes[lane] += a[i] * b[i];
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

/// Takes the directions of `done` rows of `basis` out of `row` and gives it length one; false: nothing but
/// rounding would be left of it.
bool clear_and_scale(const double* basis, int64_t done, double* row, int64_t count) {
  const double before = std::sqrt(dot(row, row, count));
  if (!(before > 0)) return false;
  for (int pass = 0; pass < 2; ++pass) {  // the second takes out what rounding left in the first
    for (int64_t k = 0; k < done; ++k) {
      const double* const other = basis + k * count;
      const double share = dot(other, row, count);
      for (int64_t i = 0; i < count; ++i) row[i] -= share * other[i];
    }
  }
  const double left = std::sqrt(dot(row, row, count));
  if (!(left > 1e-7 * before)) return false;  // that far the fp32 numbers are exact
  for (int64_t i = 0; i < count; ++i) row[i] /= left;
  return true;
}

void orthonormalize_rows(const at::Tensor& rows, std::optional<uint64_t> key) {
  const int64_t many = rows.size(0), count = rows.size(1);
  float* const numbers = rows.data_ptr<float>();
  std::vector<double> basis(numbers, numbers + many * count);
  for (int64_t k = 0; k < many; ++k) {
    double* const row = basis.data() + k * count;
    bool done = clear_and_scale(basis.data(), k, row, count);
    for (int attempt = 0; !done && key && k < count && attempt < 4; ++attempt) {
      Rng rng(mix_key(*key, k, attempt));
      for (int64_t i = 0; i < count; ++i) row[i] = rng.normal();
      done = clear_and_scale(basis.data(), k, row, count);
    }
    if (!done) std::fill(row, row + count, 0.0);
  }
  for (int64_t i = 0; i < many * count; ++i) numbers[i] = static_cast<float>(basis[static_cast<size_t>(i)]);
}

}  // namespace

void orthonormalize(const std::vector<at::Tensor>& matrices, const std::vector<uint64_t>& keys) {
  if (!matrices.empty() && matrices.front().is_cuda()) return gpu::orthonormalize(matrices, keys);
  for (size_t i = 0; i < matrices.size(); ++i) {
    orthonormalize_rows(matrices[i], keys.empty() ? std::nullopt : std::optional(keys[i]));
  }
}

}  // namespace syncopate::parallel
