#include "syncopate/nn/layers/noise.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/base/noise_hash.h"
#include "syncopate/base/rng.h"
#include "syncopate/gpu/graph.h"
#include "syncopate/gpu/seed.h"
#include "syncopate/nn/layers/gpu/support.h"

namespace syncopate::nn {

Noise make_noise(uint64_t key, double rate) {
  check(rate >= 0 && rate < 1, "a dropout rate outside [0, 1)");
  Noise noise;
  noise.key = key;
  noise.drop_below = static_cast<uint32_t>(std::min(std::round(rate * 0x1p32), 0x1p32 - 1));
  noise.scale = static_cast<float>(1.0 / (1.0 - noise.drop_below * 0x1p-32));
  return noise;
}

NoiseRows rows_of(std::span<const int64_t> ids, int64_t each) {
  auto rows = std::make_shared<std::vector<uint64_t>>();
  rows->reserve(ids.size() * static_cast<size_t>(each));
  for (const int64_t id : ids) {
    const uint64_t first = mix(static_cast<uint64_t>(id));
    for (uint64_t place = 0; place < static_cast<uint64_t>(each); ++place) rows->push_back(first + place);
  }
  return rows;
}

std::shared_ptr<const DeviceRows> device_rows(const tensor::Batch& batch, int64_t each,
                                              const at::Tensor& positions) {
  const auto key = batch.fields.find("noise_key");
  if (key == batch.fields.end() || !key->second.is_cuda()) return nullptr;
  return std::make_shared<DeviceRows>(DeviceRows{
      .key = key->second, .examples = batch.at("noise_examples"), .positions = positions, .each = each});
}

NoiseRows rows_of(const tensor::Batch& batch, const at::Tensor& tokens_BL) {
  check(batch.size() == tokens_BL.size(0), "a batch says which examples it holds");
  return rows_of(batch.ids, tokens_BL.size(1));
}

NoiseRows chosen_rows(const NoiseRows& rows_BL, const at::Tensor& positions) {
  if (!rows_BL) return rows_BL;
  const at::Tensor on_host = positions.cpu().contiguous();
  auto rows = std::make_shared<std::vector<uint64_t>>();
  for (const int64_t position : std::span(on_host.data_ptr<int64_t>(), static_cast<size_t>(on_host.numel())))
    rows->push_back(rows_BL->at(static_cast<size_t>(position)));
  return rows;
}

namespace {

int64_t wrapped(uint64_t number) { return static_cast<int64_t>(number); }

/// Hashing in signed 64-bit numbers, since tensors have no unsigned arithmetic: products wrap around alike,
/// shifts to the right need their upper bits cleared.
at::Tensor fold(const at::Tensor& x, int shift) {
  return x.bitwise_xor(x.bitwise_right_shift(shift).bitwise_and((int64_t{1} << (64 - shift)) - 1));
}

/// Before they are hashed: of each row of the noise.
at::Tensor row_numbers(const Noise& noise, int64_t rows, const at::TensorOptions& options) {
  at::Tensor numbers = at::arange(rows, at::kLong);
  if (noise.rows) {
    check(static_cast<int64_t>(noise.rows->size()) == rows, "one row of the noise for each row");
    if (rows > 0) std::memcpy(numbers.data_ptr(), noise.rows->data(), noise.rows->size() * sizeof(uint64_t));
  }
  numbers = numbers.to(options.device());
  return numbers.add(1).mul(wrapped(noise_hash::kRowStep)).add(wrapped(noise.key));
}

/// `seeds` [..., 1]: of the rows, before they are hashed.
at::Tensor factors_of(at::Tensor seeds, const Noise& noise, int64_t columns,
                      const at::TensorOptions& options) {
  constexpr int64_t kLow = 0xFFFFFFFF;
  seeds = fold(seeds, noise_hash::kRowShift1).mul(wrapped(noise_hash::kRowFactor1));
  seeds = fold(seeds, noise_hash::kRowShift2).mul(wrapped(noise_hash::kRowFactor2));
  seeds = fold(seeds, noise_hash::kRowShift3);
  const at::Tensor low = seeds.bitwise_and(kLow), high = seeds.bitwise_right_shift(32).bitwise_and(kLow);
  const auto scramble = [](const at::Tensor& x, int shift, uint32_t factor) {
    return x.bitwise_xor(x.bitwise_right_shift(shift)).mul(static_cast<int64_t>(factor)).bitwise_and(kLow);
  };
  at::Tensor hash =
      at::arange(columns, seeds.options()).mul(int64_t{noise_hash::kColumnStep}).bitwise_and(kLow);
  hash = hash.bitwise_xor(low);
  hash = scramble(hash, noise_hash::kShift1, noise_hash::kFactor1).bitwise_xor(high);
  hash = scramble(hash, noise_hash::kShift2, noise_hash::kFactor2);
  hash = hash.bitwise_xor(hash.bitwise_right_shift(noise_hash::kShift3));
  return hash.ge(static_cast<int64_t>(noise.drop_below)).to(options.dtype()).mul(noise.scale);
}

}  // namespace

at::Tensor noise_factors(const Noise& noise, int64_t rows, int64_t columns,
                         const at::TensorOptions& options) {
  return factors_of(row_numbers(noise, rows, options).unsqueeze(1), noise, columns, options);
}

at::Tensor apply_noise(const at::Tensor& x, const Noise& noise) {
  if (!noise.active() || x.numel() == 0) return x;
  if (on_gpu::can_drop(x, noise)) return on_gpu::drop(x, noise);
  if (x.is_cuda()) return at::dropout(x, noise.drop_below * 0x1p-32, true);
  const int64_t columns = x.size(-1);
  return x * noise_factors(noise, x.numel() / columns, columns, x.options()).view(x.sizes());
}

at::Tensor apply_noise_by_head(const at::Tensor& probs_BHQL, const Noise& noise) {
  if (!noise.active() || probs_BHQL.numel() == 0) return probs_BHQL;
  if (probs_BHQL.is_cuda()) return at::dropout(probs_BHQL, noise.drop_below * 0x1p-32, true);
  const int64_t B = probs_BHQL.size(0), H = probs_BHQL.size(1), Q = probs_BHQL.size(2);
  const at::TensorOptions options = probs_BHQL.options();
  const at::Tensor rows_B1Q1 = row_numbers(noise, B * Q, options).view({B, 1, Q, 1});
  const at::Tensor heads = at::arange(H, rows_B1Q1.options()).mul(wrapped(noise_hash::kHeadStep));
  return probs_BHQL * factors_of(rows_B1Q1 + heads.view({H, 1, 1}), noise, probs_BHQL.size(3), options);
}

void seed_device_noise(c10::Device device, uint64_t key, std::span<const int64_t> ids) {
  if (device.is_cpu() || gpu::capturing(device)) return;  // a graph is seeded when it is launched
  gpu::seed(device, key, ids);
}

}  // namespace syncopate::nn
