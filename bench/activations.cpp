// How fast do activations become a few bits and bits activations, on one core? Prints gigabytes of fp32 per
// second for every number of bits with each set of kernels, then what a buffer in a mapped file costs against
// one in memory. Arguments: rows (4096), channels (768).
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "syncopate/base/clock.h"
#include "syncopate/base/file.h"
#include "syncopate/codec/activation.h"
#include "syncopate/parallel/pipeline/activation_codec.h"

namespace syncopate::bench {
namespace {

constexpr int kRounds = 15;

/// The quickest round: what a core gives, also where others use the machine.
double seconds_of(const std::function<void()>& work) {
  double least = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    const Stopwatch watch;
    work();
    least = std::min(least, watch.seconds());
  }
  return least;
}

struct Sizes {
  int64_t rows, channels;
  int64_t count() const { return rows * channels; }
};

void rates(const Sizes& sizes) {
  const at::Tensor values = at::randn({sizes.rows, sizes.channels}) * at::rand({sizes.channels}).exp_();
  const at::Tensor before = values + 0.1 * at::randn({sizes.rows, sizes.channels});
  at::Tensor memory = before.clone(), into = at::empty_like(values);
  const std::span<float> decoded(into.data_ptr<float>(), static_cast<size_t>(sizes.count()));
  const auto rate = [&](const std::function<void()>& work) {
    return 4e-9 * static_cast<double>(sizes.count()) / seconds_of(work);
  };
  fmt::print(
      "| bits | rounding | kernels | encode GB/s | decode | encode a change | apply it | bits a value | "
      "error |\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  for (const auto* set : codec::kernels::supported_kernels()) {
    codec::kernels::use_kernels(*set);
    for (const bool stochastic : {false, true}) {
      for (int bits = 1; bits <= 8; ++bits) {
        const codec::ActivationBits coder(bits, stochastic);
        std::vector<uint8_t> head(static_cast<size_t>(coder.step_bytes(sizes.channels)));
        std::vector<uint8_t> packed(static_cast<size_t>(coder.packed_bytes(sizes.count())));
        const codec::MatrixRows plain{values.data_ptr<float>(), sizes.rows};
        codec::SquaredError error;
        const double encode = rate([&] {
          error = coder.encode(plain, coder.measure({&plain, 1}, sizes.channels, head), 1, packed);
        });
        const double decode = rate([&] { coder.decode(packed, coder.read(head), decoded); });
        memory.copy_(before);
        const codec::MatrixRows change{plain.values, sizes.rows, memory.data_ptr<float>()};
        const double encode_change = rate([&] {
          coder.encode(change, coder.measure({&change, 1}, sizes.channels, head), 1, packed,
                       memory.data_ptr<float>());
        });
        const double apply = rate([&] {
          coder.decode(packed, coder.read(head), decoded, memory.data_ptr<float>(), memory.data_ptr<float>());
        });
        fmt::print(
            "| {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.3f} |\n", bits,
            stochastic ? "stochastic" : "nearest", set->name, encode, decode, encode_change, apply,
            8.0 * static_cast<double>(head.size() + packed.size()) / static_cast<double>(sizes.count()),
            std::sqrt(error.error / error.meant));
      }
    }
  }
}

/// Seconds of a message, packed and unpacked, when every example was seen before.
double message_seconds(const parallel::ActivationOptions& options) {
  constexpr int64_t kBatches = 64, kExamples = 8, kLength = 128, kChannels = 768;
  const auto sender = parallel::make_activation_codec(options, {.name = "out"});
  const auto receiver = parallel::make_activation_codec(options, {.name = "in"});
  const at::Tensor base = at::randn({kExamples, kLength, kChannels});
  std::vector<tensor::Batch> batches(kBatches);
  for (int64_t b = 0; b < kBatches; ++b) {
    for (int64_t i = 0; i < kExamples; ++i) batches[static_cast<size_t>(b)].ids.push_back(b * kExamples + i);
  }
  const auto round = [&](double change) {
    const at::Tensor hidden = base + change;
    const Stopwatch watch;
    for (size_t b = 0; b < batches.size(); ++b) {
      const tensor::Batch& next = batches[(b + 1) % batches.size()];
      sender->prefetch(next.ids);
      receiver->prefetch(next.ids);
      receiver->expect(hidden, batches[b]);
      receiver->unpack(sender->pack(hidden, batches[b]), hidden, batches[b]);
    }
    return watch.seconds() / static_cast<double>(batches.size());
  };
  round(0);
  std::vector<double> seconds;
  for (int i = 1; i <= 5; ++i) seconds.push_back(round(0.1 * i));
  std::nth_element(seconds.begin(), seconds.begin() + 2, seconds.end());
  return seconds[2];
}

void buffers() {
  const std::filesystem::path folder = "activation-buffers.bench";
  fmt::print("\n| store | ms a message, memory | file | ratio |\n|---|---|---|---|\n");
  for (const char* store : {"fp32", "fp16", "int8", "int4"}) {
    parallel::ActivationOptions options{
        .codec = "ac-sgd", .forward_bits = 4, .store = store, .folder = folder};
    const double memory = message_seconds(options);
    options.buffer = "file";
    const double file = message_seconds(options);
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} |\n", store, 1e3 * memory, 1e3 * file, file / memory);
  }
  remove_tree(folder);
}

}  // namespace
}  // namespace syncopate::bench

int main(int count, char** arguments) {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  at::manual_seed(1);
  const auto number = [&](int place, int64_t otherwise) {
    return count > place ? std::atoll(arguments[place]) : otherwise;
  };
  syncopate::bench::rates({number(1, 4096), number(2, 768)});
  syncopate::bench::buffers();
}
