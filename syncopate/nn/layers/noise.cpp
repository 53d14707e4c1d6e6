#include "syncopate/nn/layers/noise.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "syncopate/base/error.h"
#include "syncopate/nn/kernels/noise_hash.h"

namespace syncopate::nn {

Noise make_noise(uint64_t key, double rate) {
  check(rate >= 0 && rate < 1, "a dropout rate outside [0, 1)");
  Noise noise;
  noise.key = key;
  noise.drop_below = static_cast<uint32_t>(std::min(std::round(rate * 0x1p32), 0x1p32 - 1));
  noise.scale = static_cast<float>(1.0 / (1.0 - noise.drop_below * 0x1p-32));
  return noise;
}

at::Tensor noise_factors(const Noise& noise, int64_t rows, int64_t columns,
                         const at::TensorOptions& options) {
  // Hashing in signed 64-bit numbers, since tensors have no unsigned arithmetic: products wrap around alike,
  // shifts to the right need their upper bits cleared.
  constexpr int64_t kLow = 0xFFFFFFFF;
  const auto fold = [](const at::Tensor& x, int shift) {
    return x.bitwise_xor(x.bitwise_right_shift(shift).bitwise_and((int64_t{1} << (64 - shift)) - 1));
  };
  const auto wrapped = [](uint64_t number) { return static_cast<int64_t>(number); };
  at::Tensor seeds = at::arange(rows, options.dtype(at::kLong).requires_grad(false)).mul(noise.row_step);
  seeds = seeds.add(1).mul(wrapped(kernels::kRowStep)).add(wrapped(noise.key)).unsqueeze(1);
  seeds = fold(seeds, kernels::kRowShift1).mul(wrapped(kernels::kRowFactor1));
  seeds = fold(seeds, kernels::kRowShift2).mul(wrapped(kernels::kRowFactor2));
  seeds = fold(seeds, kernels::kRowShift3);
  const at::Tensor low = seeds.bitwise_and(kLow), high = seeds.bitwise_right_shift(32).bitwise_and(kLow);
  const auto scramble = [](const at::Tensor& x, int shift, uint32_t factor) {
    return x.bitwise_xor(x.bitwise_right_shift(shift)).mul(static_cast<int64_t>(factor)).bitwise_and(kLow);
  };
  at::Tensor hash = at::arange(columns, seeds.options()).mul(int64_t{kernels::kColumnStep}).bitwise_and(kLow);
  hash = hash.unsqueeze(0).bitwise_xor(low);
  hash = scramble(hash, kernels::kShift1, kernels::kFactor1).bitwise_xor(high);
  hash = scramble(hash, kernels::kShift2, kernels::kFactor2);
  hash = hash.bitwise_xor(hash.bitwise_right_shift(kernels::kShift3));
  return hash.ge(static_cast<int64_t>(noise.drop_below)).to(options.dtype()).mul(noise.scale);
}

at::Tensor apply_noise(const at::Tensor& x, const Noise& noise) {
  if (!noise.active() || x.numel() == 0) return x;
  if (x.is_cuda()) return at::dropout(x, noise.drop_below * 0x1p-32, true);
  const int64_t columns = x.size(-1);
  return x * noise_factors(noise, x.numel() / columns, columns, x.options()).view(x.sizes());
}

void seed_device_noise(c10::Device device, uint64_t key) {
  if (device.is_cpu()) return;
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(key);
}

}  // namespace syncopate::nn
