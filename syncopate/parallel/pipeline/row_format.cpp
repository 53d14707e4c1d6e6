#include "syncopate/parallel/pipeline/row_format.h"

#include <algorithm>
#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/codec/kernels/kernels.h"

namespace syncopate::parallel {

codec::ChannelSteps RowFormat::measure(std::span<const codec::MatrixRows> runs, int64_t channels,
                                       std::span<uint8_t> head) const {
  return bits_ ? bits_->measure(runs, channels, head) : codec::ChannelSteps{};
}

codec::ChannelSteps RowFormat::read(std::span<const uint8_t> head, int64_t channels) const {
  check(std::ssize(head) == head_bytes(channels), "a step for each channel");
  return bits_ ? bits_->read(head) : codec::ChannelSteps{};
}

codec::SquaredError RowFormat::encode(std::span<const float> run, const codec::ChannelSteps& steps,
                                      uint64_t key, std::span<uint8_t> into, float* received) const {
  check(std::ssize(into) == run_bytes(std::ssize(run)), "room for exactly what is packed");
  if (run.empty()) return {};
  if (bits_) {
    return bits_->encode({run.data(), std::ssize(run) / steps.channels()}, steps, key, into, received);
  }
  const auto& kernels = codec::kernels::kernels();
  if (width_ == 4) {
    std::memcpy(into.data(), run.data(), into.size());
    if (received != nullptr) std::memcpy(received, run.data(), into.size());
    return kernels.activations.compare(run.data(), run.data(), std::ssize(run));
  }
  constexpr size_t kChunk = 4096;  // stays in the cache until it is compared
  float back[kChunk];
  codec::SquaredError sums;
  for (size_t at = 0; at < run.size(); at += kChunk) {
    const auto some = run.subspan(at, std::min(kChunk, run.size() - at));
    const std::span<float> decoded(received != nullptr ? received + at : back, some.size());
    kernels.fp16.encode(some.data(), into.data() + 2 * at, std::ssize(some));
    kernels.fp16.decode(into.data() + 2 * at, decoded.data(), std::ssize(some));
    sums += kernels.activations.compare(some.data(), decoded.data(), std::ssize(some));
  }
  return sums;
}

void RowFormat::decode(std::span<const uint8_t> from, const codec::ChannelSteps& steps,
                       std::span<float> into) const {
  check(std::ssize(from) == run_bytes(std::ssize(into)), "room for exactly what was packed");
  if (into.empty()) return;
  if (bits_) {
    bits_->decode(from, steps, into);
  } else if (width_ == 4) {
    std::memcpy(into.data(), from.data(), from.size());
  } else {
    codec::kernels::kernels().fp16.decode(from.data(), into.data(), std::ssize(into));
  }
}

}  // namespace syncopate::parallel
