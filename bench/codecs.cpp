// How fast do gradients become bytes and bytes gradients, on one core? Prints gigabytes of fp32 per second of
// each codec with each set of kernels, beside what ATen's operations give.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "syncopate/base/clock.h"
#include "syncopate/codec/codec.h"
#include "syncopate/codec/kernels/kernels.h"

namespace syncopate::bench {
namespace {

constexpr int64_t kCount = 11'171'000;  // bert-mini
constexpr int kRounds = 9;

/// Gigabytes of fp32 per second, the median of the rounds after one that is not counted.
double rate(const std::function<void()>& work) {
  std::vector<double> seconds;
  work();
  for (int i = 0; i < kRounds; ++i) {
    const Stopwatch watch;
    work();
    seconds.push_back(watch.seconds());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
  return 4e-9 * kCount / seconds[kRounds / 2];
}

void ours(const at::Tensor& numbers) {
  const std::span<const float> from(numbers.data_ptr<float>(), kCount);
  std::vector<float> into(kCount), fed(kCount), rest(kCount);
  for (const auto* set : codec::kernels::supported_kernels()) {
    codec::kernels::use_kernels(*set);
    for (const std::string& name : codec::element_codec_names()) {
      const auto codec = codec::make_codec({.name = name, .ratio = 0.01});
      std::vector<uint8_t> packed(static_cast<size_t>(codec->packed_bytes(kCount)));
      const double encode = rate([&] { codec->encode(from, packed, 7); });
      const double decode = rate([&] { codec->decode(packed, into, 7); });
      const double add = rate([&] { codec->decode_add(packed, into, 7); });
      std::copy(from.begin(), from.end(), fed.begin());
      std::fill(rest.begin(), rest.end(), 0.0f);
      const double with_rest = rate([&] { codec->encode_with_rest(fed, rest, packed, 7); });
      fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", name, set->name, encode,
                 decode, add, with_rest, 8.0 * static_cast<double>(packed.size()) / kCount);
    }
  }
}

void atens(const at::Tensor& numbers) {
  const auto line = [](const char* name, double encode, double decode) {
    fmt::print("| {} | ATen | {:.2f} | {:.2f} | | | |\n", name, encode, decode);
  };
  at::Tensor packed, into = at::empty_like(numbers), scale;
  for (const auto& [name, type] : {std::pair{"fp16", at::kHalf}, {"bf16", at::kBFloat16}}) {
    packed = at::empty(numbers.sizes(), type);
    const double encode = rate([&] { packed.copy_(numbers); });
    line(name, encode, rate([&] { into.copy_(packed); }));
  }
  const at::Tensor buckets = numbers.narrow(0, 0, kCount / 512 * 512).view({-1, 512});
  const at::Tensor spread = into.narrow(0, 0, kCount / 512 * 512).view({-1, 512});
  double encode = rate([&] {
    scale = buckets.abs().amax(1, true).div_(127);
    packed = buckets.div(scale).round_().to(at::kChar);
  });
  line("int8", encode, rate([&] { spread.copy_(packed).mul_(scale); }));
  encode = rate([&] {
    scale = buckets.abs().mean(1, true);
    packed = buckets.lt(0);  // a byte for each: ATen has no bits
  });
  line("sign", encode, rate([&] { spread.copy_(at::where(packed, -scale, scale)); }));
  at::Tensor values, places;
  encode = rate([&] {
    places = std::get<1>(numbers.abs().topk(codec::kept_of(kCount, 0.01), 0, true, false));
    values = numbers.index_select(0, places);
  });
  line("top-k", encode, rate([&] { into.zero_().index_copy_(0, places, values); }));
}

}  // namespace
}  // namespace syncopate::bench

int main() {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  at::manual_seed(1);
  const at::Tensor numbers = at::randn({syncopate::bench::kCount}) * 1e-3;
  fmt::print(
      "| codec | kernels | encode GB/s | decode | decode and add | encode with rest | bits |\n"
      "|---|---|---|---|---|---|---|\n");
  syncopate::bench::ours(numbers);
  syncopate::bench::atens(numbers);
}
