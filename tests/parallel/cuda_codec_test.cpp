// Packing on a GPU: the same bytes as on the host, and the same sums.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "syncopate/base/error.h"
#include "syncopate/gpu/graph.h"
#include "syncopate/parallel/averagers/all_reduce.h"
#include "syncopate/parallel/averagers/coded.h"
#include "syncopate/parallel/averagers/low_rank.h"
#include "syncopate/parallel/averagers/orthonormal.h"
#include "syncopate/parallel/averagers/packer.h"
#include "syncopate/parallel/strategies/every_step.h"
#include "syncopate/parallel/strategies/one_bit.h"
#include "tests/contract/ranks.h"
#include "tests/parallel/small_replica.h"

namespace syncopate::parallel {
namespace {

#define SYNCOPATE_NEED_KERNELS() \
  if (!at::hasCUDA() || !gpu::built()) GTEST_SKIP() << "needs a CUDA device and kernels for it"

const c10::Device kHost(at::kCPU), kGpu(at::kCUDA, 0);
constexpr int64_t kCounts[] = {0, 1, 15, 100, 129, 513, 4097, 70'001};
constexpr uint64_t kKey = 99;

Packer packer_of(const std::string& name) { return Packer(codec::make_codec({.name = name, .ratio = 0.1})); }

/// Of every exponent that a gradient may have.
at::Tensor wild(int64_t count, uint64_t seed) {
  Rng rng(mix_key(seed, count));
  const at::Tensor numbers = at::empty({count});
  for (int64_t i = 0; i < count; ++i)
    numbers.data_ptr<float>()[i] = static_cast<float>(rng.normal() * std::exp(4 * rng.normal()));
  return numbers;
}

at::Tensor few_values(int64_t count, uint64_t seed) {
  Rng rng(mix_key(seed, count));
  const at::Tensor numbers = at::empty({count});
  for (int64_t i = 0; i < count; ++i) numbers.data_ptr<float>()[i] = static_cast<float>(rng.below(5)) - 2.0f;
  return numbers;
}

/// Also where both are no numbers.
bool same(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.cpu(), y = b.cpu();
  return x.sizes() == y.sizes() && x.eq(y).logical_or(x.isnan().logical_and(y.isnan())).all().item<bool>();
}

/// What a codec makes of numbers and of what was kept, on a device.
struct Packing {
  at::Tensor packed, decoded, added, packed_with_rest, sum, rest;
};

Packing made_on(c10::Device device, const Packer& packer, const at::Tensor& numbers, const at::Tensor& rest) {
  EXPECT_EQ(packer.place_of(device), device);
  const int64_t count = numbers.numel();
  Packing made{.packed = packer.room(count, device),
               .decoded = at::empty({count}, at::TensorOptions(device)),
               .added = rest.to(device, at::kFloat, false, true),
               .packed_with_rest = packer.room(count, device),
               .sum = numbers.to(device, at::kFloat, false, true),
               .rest = rest.to(device, at::kFloat, false, true)};
  packer.encode(made.sum, made.packed, kKey);
  packer.decode(made.packed, made.decoded, kKey);
  packer.decode_add(made.packed, made.added, kKey);
  packer.encode_with_rest(made.sum, made.rest, made.packed_with_rest, kKey);
  return made;
}

TEST(Cuda, CodecsPackAsTheCpuDoes) {
  SYNCOPATE_NEED_KERNELS();
  for (const std::string& name : codec::element_codec_names()) {
    const Packer packer = packer_of(name);
    for (const int64_t count : kCounts) {
      SCOPED_TRACE(name + " " + std::to_string(count));
      for (const auto& [numbers, rest] : {std::pair(wild(count, 1), wild(count, 2).mul(0.1)),
                                          std::pair(few_values(count, 3), at::zeros({count})),
                                          std::pair(at::zeros({count}), at::zeros({count})),
                                          std::pair(wild(count, 4).mul(1e-38), wild(count, 5).mul(1e-38))}) {
        const Packing right = made_on(kHost, packer, numbers, rest),
                      made = made_on(kGpu, packer, numbers, rest);
        EXPECT_TRUE(made.packed.is_cuda() && made.rest.is_cuda());
        EXPECT_TRUE(at::equal(made.packed.cpu(), right.packed));
        EXPECT_TRUE(at::equal(made.decoded.cpu(), right.decoded));
        EXPECT_TRUE(at::equal(made.added.cpu(), right.added));
        EXPECT_TRUE(at::equal(made.packed_with_rest.cpu(), right.packed_with_rest));
        EXPECT_TRUE(at::equal(made.sum.cpu(), right.sum));
        EXPECT_TRUE(at::equal(made.rest.cpu(), right.rest));
      }
      const Packing one = made_on(kHost, packer, wild(count, 1), at::zeros({count}));
      const Packing other = made_on(kGpu, packer, wild(count, 6), at::zeros({count}));
      if (count > 100) {
        EXPECT_FALSE(at::equal(other.packed.cpu(), one.packed));
      }
    }
  }
}

TEST(Cuda, CodecsKeepNonFiniteNumbersVisible) {
  SYNCOPATE_NEED_KERNELS();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::string& name : codec::element_codec_names()) {
    const Packer packer = packer_of(name);
    for (const int64_t count : {1, 100, 4097, 70'001}) {
      SCOPED_TRACE(name + " " + std::to_string(count));
      for (const float strange : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
        const at::Tensor numbers = wild(count, 1), rest = wild(count, 2);
        numbers[count / 2] = strange;
        const Packing right = made_on(kHost, packer, numbers, rest),
                      made = made_on(kGpu, packer, numbers, rest);
        EXPECT_FALSE(at::isfinite(made.decoded).all().item<bool>());
        EXPECT_FALSE(all_finite(made.sum));
        EXPECT_TRUE(same(made.decoded, right.decoded));
        EXPECT_TRUE(same(made.sum, right.sum));
        EXPECT_TRUE(at::equal(made.rest.cpu(), rest));
      }
      // A sum with what was kept may overflow: told, and kept for another step, as on the host.
      const at::Tensor numbers = wild(count, 1), rest = wild(count, 2);
      numbers[count - 1] = rest[count - 1] = 3e38f;
      const Packing right = made_on(kHost, packer, numbers, rest),
                    made = made_on(kGpu, packer, numbers, rest);
      EXPECT_TRUE(all_finite(numbers.to(kGpu)));
      EXPECT_TRUE(same(made.sum, right.sum));
      EXPECT_TRUE(at::equal(made.rest.cpu(), right.rest));
    }
  }
}

TEST(Cuda, DamagedMessagesOfTopKAreNoticed) {
  SYNCOPATE_NEED_KERNELS();
  const Packer packer = packer_of("top-k");
  constexpr int64_t kCount = 70'001;
  const at::Tensor numbers = wild(kCount, 1), packed = packer.room(kCount, kHost);
  packer.encode(numbers, packed, kKey);
  const at::Tensor into = at::zeros({kCount}, kGpu);
  packer.decode(packed.to(kGpu), into, kKey);
  at::Tensor too_many = packed.clone(), beyond = packed.clone();
  too_many.narrow(0, 0, 4).fill_(255);
  beyond.narrow(0, 8, 2 * codec::kept_of(kCount, 0.1)).fill_(255);  // the second stretch is shorter
  for (const at::Tensor& damaged : {too_many, beyond}) {
    EXPECT_THROW(packer.decode(damaged.to(kGpu), into, kKey), CommError);
    EXPECT_THROW(packer.decode_add(damaged.to(kGpu), into, kKey), CommError);
  }
}

TEST(Cuda, RowsBecomeOrthonormalAsOnTheCpu) {
  SYNCOPATE_NEED_KERNELS();
  std::vector<at::Tensor> right, made;
  std::vector<uint64_t> keys;
  for (int64_t i = 0; i < 100; ++i) {
    const int64_t rows = i % 5 + 1, width = 7 * i + rows;
    at::Tensor matrix = wild(rows * width, static_cast<uint64_t>(i)).view({rows, width});
    if (i % 3 == 0 && rows > 1) matrix[rows - 1].zero_();
    right.push_back(matrix);
    made.push_back(matrix.to(kGpu));
    keys.push_back(static_cast<uint64_t>(i));
  }
  const auto start = made;
  for (const bool replaces : {false, true}) {
    std::vector<at::Tensor> host, device;
    for (size_t i = 0; i < right.size(); ++i) {
      host.push_back(right[i].clone());
      device.push_back(start[i].clone());
    }
    orthonormalize(host, replaces ? keys : std::vector<uint64_t>());
    orthonormalize(device, replaces ? keys : std::vector<uint64_t>());
    for (size_t i = 0; i < host.size(); ++i) {
      EXPECT_TRUE(at::allclose(device[i].cpu(), host[i], 1e-6, 1e-6)) << i;
      EXPECT_FALSE(at::allclose(device[i].cpu(), right[i], 1e-3, 1e-3)) << i;
    }
  }
}

/// A codec that nobody but the host knows.
class OwnCodec : public codec::Codec {
 public:
  int64_t packed_bytes(int64_t count) const override { return inner_->packed_bytes(count); }
  void encode(std::span<const float> from, std::span<uint8_t> into, uint64_t key) const override {
    inner_->encode(from, into, key);
  }
  void decode(std::span<const uint8_t> from, std::span<float> into, uint64_t key) const override {
    inner_->decode(from, into, key);
  }
  void decode_add(std::span<const uint8_t> from, std::span<float> into, uint64_t key) const override {
    inner_->decode_add(from, into, key);
  }
  bool encode_with_rest(std::span<float> from, std::span<float> rest, std::span<uint8_t> into,
                        uint64_t key) const override {
    return inner_->encode_with_rest(from, rest, into, key);
  }

 private:
  std::unique_ptr<codec::Codec> inner_ = codec::make_codec({.name = "int8"});
};

std::unique_ptr<Averager> averager_of(const std::string& name, comm::Group& group) {
  if (name == "power-sgd") return std::make_unique<LowRank>(group, LowRank::Options{.rank = 2});
  auto codec = name == "own" ? std::make_unique<OwnCodec>() : codec::make_codec({.name = name, .ratio = 0.1});
  return std::make_unique<Coded>(group, std::move(codec), Coded::Options{});
}

/// The word embeddings: on a GPU no model names the rows that it reads.
const tensor::FlatParams::Entry& table_of(const tensor::FlatParams& params) {
  for (const auto& entry : params.entries()) {
    if (entry.name.find("word_embeddings") != std::string::npos) return entry;
  }
  throw std::runtime_error("no word embeddings");
}

/// What the last rank has after a few exchanges, of two pieces and of a table's rows: sums, and what is kept.
std::vector<at::Tensor> exchanged(const std::string& name, int ranks, c10::Device device, int64_t seed) {
  std::vector<at::Tensor> found;
  test::run_ranks(ranks, [&](comm::Group& group) {
    if (device.is_cuda()) gpu::use_own_stream(device);
    test::SmallReplica small(1, {}, device);
    const auto averager = averager_of(name, group);
    averager->attach(small.replica);
    const at::Tensor& grads = small.params.grads;
    const auto& entry = table_of(small.params);
    const at::Tensor table = entry.parameter;
    const at::Tensor rows = at::arange(3, 33, at::kLong);
    std::vector<at::Tensor> mine;
    for (int64_t step = 0; step < 4; ++step) {
      averager->begin(step);
      small.set_gradient(seed + 10 * step + group.rank());
      const int64_t half = small.params.entries()[3].offset;
      at::Tensor packed = small.params.grad_of(entry).view(table.sizes()).index_select(0, rows.to(device));
      comm::Pending first = averager->start({grads.narrow(0, 0, half), 0});
      comm::Pending second = averager->start({grads.narrow(0, half, grads.numel() - half), half});
      comm::Pending third = averager->start({packed, entry.offset, rows});
      for (comm::Pending* each : {&first, &second, &third}) each->wait();
      mine.insert(mine.end(), {grads.cpu().clone(), packed.cpu()});
    }
    for (const StateTensor& each : averager->state()) {
      if (each.laid_at) {
        EXPECT_EQ(each.tensor.device(), name == "own" ? kHost : device) << each.name;
      }
      mine.push_back(each.tensor.cpu());
    }
    if (group.rank() + 1 == group.size()) found = mine;
  });
  return found;
}

bool all_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  bool equal = a.size() == b.size() && !a.empty();
  for (size_t i = 0; equal && i < a.size(); ++i) equal = at::equal(a[i], b[i]);
  return equal;
}

TEST(Cuda, CodedSumsAreThoseOfTheCpu) {
  SYNCOPATE_NEED_KERNELS();
  for (const std::string name :
       {"none", "fp16", "bf16", "int8", "int4", "sign", "top-k", "random-k", "own"}) {
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(name + " " + std::to_string(ranks));
      const auto made = exchanged(name, ranks, kGpu, 0);
      EXPECT_TRUE(all_equal(made, exchanged(name, ranks, kHost, 0)));
      EXPECT_FALSE(all_equal(made, exchanged(name, ranks, kHost, 1)));
    }
  }
}

double off_by(const at::Tensor& made, const at::Tensor& right) {
  return ((made - right).norm() / right.norm()).item<double>();
}

TEST(Cuda, LowRankSumsAreNearThoseOfTheCpu) {
  SYNCOPATE_NEED_KERNELS();
  for (const int ranks : {2, 3}) {
    const auto made = exchanged("power-sgd", ranks, kGpu, 0), right = exchanged("power-sgd", ranks, kHost, 0),
               other = exchanged("power-sgd", ranks, kHost, 1);
    ASSERT_EQ(made.size(), right.size());
    for (size_t i = 0; i < 8; ++i) {  // sums
      EXPECT_LT(off_by(made[i], right[i]), 1e-5) << i;
      EXPECT_GT(off_by(made[i], other[i]), 1e-2) << i;
    }
    for (size_t i = 8; i < made.size(); ++i) EXPECT_TRUE(at::allclose(made[i], right[i], 1e-3, 1e-4)) << i;
  }
}

/// Whose gradient is dense on any device: of a classifier, a CPU exchanges the word table by rows and a GPU
/// with all the rest.
test::SmallReplica dense_replica(c10::Device device) {
  return test::SmallReplica(nn::make_bert<nn::BertMaskedLm>(test::SmallReplica::config(), 1), {}, device);
}

/// The parameters after steps of 1-bit Adam.
at::Tensor trained_by_signs(c10::Device device, int64_t seed) {
  at::Tensor found;
  test::run_ranks(2, [&](comm::Group& group) {
    if (device.is_cuda()) gpu::use_own_stream(device);
    test::SmallReplica small = dense_replica(device);
    OneBit strategy(
        group, std::make_unique<EveryStep>(group, std::make_unique<AllReduce>(group), EveryStep::Options{}),
        {.warmup = 3});
    strategy.start(small.replica);
    for (int64_t step = 0; step < 8; ++step) {
      small.set_gradient(seed + 10 * step + group.rank());
      small.context = {.step = step, .lr = 1e-3, .count = 2};
      strategy.before_backward(small.replica, small.context, true);
      small.step(strategy);
    }
    if (group.rank() == 0) found = small.params.values.cpu();
  });
  return found;
}

TEST(Cuda, OneBitTrainsAsOnTheCpu) {
  SYNCOPATE_NEED_KERNELS();
  const at::Tensor start = dense_replica(kHost).params.values.clone();
  const at::Tensor right = trained_by_signs(kHost, 0) - start;
  EXPECT_LT(off_by(trained_by_signs(kGpu, 0) - start, right), 1e-2);
  EXPECT_GT(off_by(trained_by_signs(kHost, 1) - start, right), 0.1);
}

}  // namespace
}  // namespace syncopate::parallel
