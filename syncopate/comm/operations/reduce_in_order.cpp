#include "syncopate/comm/operations/reduce_in_order.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "syncopate/comm/operations/reduce_type.h"

namespace syncopate::comm {
namespace {

/// A block of the sum stays in the nearest cache while every rank's numbers are added to it.
void add_floats(const std::vector<const void*>& parts, const std::vector<void*>& outs, int64_t count) {
  constexpr int64_t kBlock = 2048;
  alignas(64) std::array<float, kBlock> sum;
  for (int64_t from = 0; from < count; from += kBlock) {
    const int64_t some = std::min(kBlock, count - from);
    const float* const first = static_cast<const float*>(parts[0]) + from;
    const float* const second = static_cast<const float*>(parts[1]) + from;
    for (int64_t k = 0; k < some; ++k) sum[static_cast<size_t>(k)] = first[k] + second[k];
    for (size_t r = 2; r < parts.size(); ++r) {
      const float* const next = static_cast<const float*>(parts[r]) + from;
      for (int64_t k = 0; k < some; ++k) sum[static_cast<size_t>(k)] += next[k];
    }
    for (void* out : outs)
      std::memcpy(static_cast<float*>(out) + from, sum.data(), static_cast<size_t>(some) * sizeof(float));
  }
}

at::Tensor view(const void* data, int64_t count, at::ScalarType type) {
  return at::from_blob(const_cast<void*>(data), {count}, at::TensorOptions().dtype(type));
}

}  // namespace

void reduce_next(at::Tensor& total, const at::Tensor& next, Op op) {
  if (op == Op::kSum) {
    total.add_(next);
  } else {
    op == Op::kMax ? at::maximum_out(total, total, next) : at::minimum_out(total, total, next);
  }
}

void reduce_in_order(const std::vector<const void*>& parts, const std::vector<void*>& outs, int64_t count,
                     at::ScalarType type, Op op) {
  if (count == 0) return;
  if (type == at::kFloat && op == Op::kSum && parts.size() > 1) return add_floats(parts, outs, count);
  at::Tensor total = view(parts[0], count, type).to(reduced_as(type), /*non_blocking=*/false, /*copy=*/true);
  for (size_t r = 1; r < parts.size(); ++r) {
    reduce_next(total, view(parts[r], count, type).to(total.scalar_type()), op);
  }
  for (void* out : outs) view(out, count, type).copy_(total);
}

void sum_used_rows(const std::vector<const void*>& tables, const std::vector<const void*>& in_use,
                   const at::Tensor& numbers, int64_t from, int64_t to, int64_t width, void* total) {
  const int64_t* const rows = numbers.data_ptr<int64_t>();
  for (int64_t i = from; i < to; ++i) {
    float* const sum = static_cast<float*>(total) + rows[i] * width;
    std::fill(sum, sum + width, 0.0F);
    for (size_t r = 0; r < tables.size(); ++r) {
      if (static_cast<const uint8_t*>(in_use[r])[rows[i]] == 0) continue;
      const float* const row = static_cast<const float*>(tables[r]) + rows[i] * width;
      for (int64_t k = 0; k < width; ++k) sum[k] += row[k];
    }
  }
}

}  // namespace syncopate::comm
