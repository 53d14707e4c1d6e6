// How fast do activations become a few bits and bits activations, on one core? Prints gigabytes of fp32 per
// second for every number of bits with each set of kernels, then what a buffer in a mapped file costs against
// one in memory. Arguments: rows (1024), channels (768).
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

/// Both ends of an edge, and batches whose examples were all seen before.
class Messages {
 public:
  explicit Messages(const parallel::ActivationOptions& options)
      : sender_(parallel::make_activation_codec(options, {.name = "out"})),
        receiver_(parallel::make_activation_codec(options, {.name = "in"})) {
    for (int64_t b = 0; b < kBatches; ++b) {
      tensor::Batch& batch = batches_.emplace_back();
      for (int64_t i = 0; i < kExamples; ++i) batch.ids.push_back(b * kExamples + i);
    }
    round();
  }

  /// Seconds to pack and unpack a message, over all batches.
  double round() {
    const at::Tensor hidden = base_ + 0.1 * time_++;
    const Stopwatch watch;
    for (size_t b = 0; b < batches_.size(); ++b) {
      const tensor::Batch &batch = batches_[b], &next = batches_[(b + 1) % batches_.size()];
      sender_->prefetch(next.ids);
      receiver_->prefetch(next.ids);
      receiver_->expect(hidden, batch);
      receiver_->unpack(sender_->pack(hidden, batch), hidden, batch);
    }
    return watch.seconds() / static_cast<double>(batches_.size());
  }

 private:
  static constexpr int64_t kBatches = 64, kExamples = 8, kLength = 128, kChannels = 768;
  std::unique_ptr<parallel::ActivationCodec> sender_, receiver_;
  std::vector<tensor::Batch> batches_;
  at::Tensor base_ = at::randn({kExamples, kLength, kChannels});
  int time_ = 0;
};

void buffers() {
  const std::filesystem::path folder = "activation-buffers.bench";
  fmt::print("\n| store | ms a message, memory | file | ratio |\n|---|---|---|---|\n");
  for (const char* store : {"fp32", "fp16", "int8", "int4"}) {
    parallel::ActivationOptions options{
        .codec = "ac-sgd", .forward_bits = 4, .store = store, .folder = folder};
    Messages in_memory(options);
    options.buffer = "file";
    Messages in_file(options);
    double memory = 1e9, file = 1e9;
    for (int i = 0; i < kRounds; ++i) {
      memory = std::min(memory, in_memory.round());
      file = std::min(file, in_file.round());
    }
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
  syncopate::bench::rates({number(1, 1024), number(2, 768)});
  syncopate::bench::buffers();
}
