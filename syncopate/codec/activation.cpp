#include "syncopate/codec/activation.h"

#include <bit>
#include <cstring>

#include "syncopate/base/error.h"

namespace syncopate::codec {
namespace {

using kernels::ActivationKernels;
using kernels::Channels;

constexpr int64_t kLanes = 16;

const ActivationKernels& activation_kernels() { return kernels::kernels().activations; }

}  // namespace

kernels::Channels ChannelSteps::view() const {
  const int64_t stride = channels_ + Channels::kLonger;
  const float* const first = arrays_.data();
  return {channels_, first, first + stride, first + 2 * stride, first + 3 * stride};
}

ActivationBits::ActivationBits(int bits, bool stochastic) : bits_(bits), stochastic_(stochastic) {
  if (bits < 1 || bits > ActivationKernels::kMostBits) {
    throw ConfigError("bits must be from 1 to {}, got {}", ActivationKernels::kMostBits, bits);
  }
}

int64_t ActivationBits::packed_bytes(int64_t count) const {
  const int64_t whole = count / ActivationKernels::kGroup, rest = count % ActivationKernels::kGroup;
  const int64_t parts = (rest + kLanes - 1) / kLanes;
  return kLanes * (whole * bits_ + (parts * bits_ + 7) / 8);
}

ChannelSteps ActivationBits::measure(std::span<const MatrixRows> pieces, int64_t channels,
                                     std::span<uint8_t> into) const {
  check(channels > 0 && std::ssize(into) == step_bytes(channels), "room for exactly a step of each channel");
  const ActivationKernels& k = activation_kernels();
  const auto size = static_cast<size_t>(channels);
  int64_t rows = 0;
  for (const MatrixRows& piece : pieces) rows += piece.rows;
  std::vector<uint32_t> largest(size, 0);
  std::vector<float> sums(size), squares(size), limits(size);
  std::vector<float> outer(3 * size);
  const kernels::Moments moments{largest.data(), sums.data(), squares.data()};
  const kernels::Beyond beyond{outer.data(), outer.data() + size, outer.data() + 2 * size};
  if (stochastic_ || bits_ > 4) {
    for (const MatrixRows& piece : pieces)
      k.largest(piece.values, piece.memory, piece.rows, channels, largest.data());
  } else {
    for (const MatrixRows& piece : pieces)
      k.moments(piece.values, piece.memory, piece.rows, channels, moments);
    if (bits_ > 1) {
      k.limits(bits_, rows, channels, moments, limits.data());
      for (const MatrixRows& piece : pieces) {
        k.beyond(piece.values, piece.memory, piece.rows, channels, limits.data(), beyond);
      }
    }
  }
  std::vector<uint16_t> wire(size);
  k.steps(bits_, stochastic_, rows, channels, moments, limits.data(), beyond, wire.data());
  std::memcpy(into.data(), wire.data(), into.size());
  return read(into);
}

ChannelSteps ActivationBits::read(std::span<const uint8_t> from) const {
  const size_t channels = from.size() / 2, stride = channels + static_cast<size_t>(Channels::kLonger);
  ChannelSteps steps;
  steps.channels_ = static_cast<int64_t>(channels);
  steps.arrays_.resize(4 * stride);
  float* const up = steps.arrays_.data();
  const auto middle = static_cast<float>(1 << (bits_ - 1));
  for (size_t c = 0; c < stride; ++c) {
    uint16_t sent;
    std::memcpy(&sent, from.data() + 2 * (c % channels), sizeof sent);
    const float step = std::bit_cast<float>(static_cast<uint32_t>(sent & 0x7fffu) << 16);
    const float center = (sent & 0x8000u) != 0 ? middle - 0.5f : middle;
    const bool usable = step > 0 && step <= 0x1p126f;
    up[c] = usable ? 1 / step : 0;
    up[stride + c] = stochastic_ ? center : center + 0.5f;
    up[2 * stride + c] = step;
    up[3 * stride + c] = center;
    if (!(step <= 0x1p126f)) steps.finite_ = false;
  }
  return steps;
}

SquaredError ActivationBits::encode(const MatrixRows& piece, const ChannelSteps& steps, uint64_t key,
                                    std::span<uint8_t> into, float* update) const {
  const int64_t count = piece.rows * steps.channels();
  check(std::ssize(into) == packed_bytes(count), "room for exactly what is packed");
  return activation_kernels().encode[bits_ - 1](piece.values, piece.memory, count, steps.view(),
                                                stochastic_ ? &key : nullptr, into.data(), update);
}

void ActivationBits::decode(std::span<const uint8_t> from, const ChannelSteps& steps, std::span<float> into,
                            const float* memory, float* update) const {
  check(std::ssize(from) == packed_bytes(std::ssize(into)), "room for exactly what was packed");
  activation_kernels().decode[bits_ - 1](from.data(), memory, std::ssize(into), steps.view(), into.data(),
                                         update);
}

}  // namespace syncopate::codec
