#include "syncopate/run/device.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/nn/kernels/kernels.h"
#include "syncopate/run/options.h"

namespace syncopate::run {
namespace {

constexpr auto kBf16 = tensor::Precision::kBf16;
constexpr auto kFp32 = tensor::Precision::kFp32;

PrecisionTrial trial(double half, double whole, const std::string& cpu = "AMD EPYC", bool usable = true) {
  return {.cpu = cpu, .usable = usable, .half = half, .whole = whole};
}

TEST(Device, IsTheGpuOfTheRankOrTheOneAskedFor) {
  EXPECT_FALSE(gpu_number("cpu", 0, 4));
  EXPECT_EQ(gpu_number("cuda", 3, 4), 3);
  EXPECT_EQ(gpu_number("cuda", 5, 4), 1) << "in turn";
  EXPECT_EQ(gpu_number("cuda:2", 3, 4), 2);
  const auto refusal = [](const std::string& name, int64_t count) -> std::string {
    try {
      gpu_number(name, 0, count);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("cuda:7", 1), "--device cuda:7 does not exist: this machine has 1 GPU");
  EXPECT_EQ(refusal("cuda:4", 4), "--device cuda:4 does not exist: this machine has 4 GPUs");
  EXPECT_EQ(refusal("cuda:3", 4), "");
  EXPECT_NE(refusal("cuda", 0).find("asks for a GPU, but there is none"), std::string::npos);
  for (const char* name : {"gpu", "cuda:", "cuda:-1", "cuda:x", "cuda1", ""})
    EXPECT_NE(refusal(name, 4).find("must be cpu, cuda or cuda:NUMBER"), std::string::npos) << name;
}

TEST(Graphs, AreNotRecordedForAReason) {
  const auto why = [](const auto& change, bool kernels = true, bool talks = false) {
    spec::RunSpec spec;
    change(spec);
    return why_no_graphs(spec, kernels, talks);
  };
  const auto plain = [](spec::RunSpec&) {};
  EXPECT_EQ(why(plain), "");
  EXPECT_NE(why(plain, false).find("without CUDA's compiler"), std::string::npos);
  EXPECT_NE(why(plain, true, true).find("model.batch_norm=sync"), std::string::npos);
  EXPECT_NE(why([](spec::RunSpec& spec) { spec.pipeline.stages = 2; }).find("stages"), std::string::npos);
  EXPECT_NE(why([](spec::RunSpec& spec) { spec.compute.recompute = true; }).find("compute.recompute"),
            std::string::npos);
  EXPECT_NE(why([](spec::RunSpec& spec) { spec.strategy.name = "data-parallel"; }).find("threads"),
            std::string::npos);
}

TEST(Precision, IsUsedWhereProductsAreFaster) {
  EXPECT_EQ(judge(kBf16, {trial(1, 2)}).used, kBf16);
  const PrecisionChoice slower = judge(kBf16, {trial(3, 2)});
  EXPECT_EQ(slower.used, kFp32);
  EXPECT_EQ(slower.note, "bf16 products take 1.5 times as long as fp32 on this CPU: computing in fp32");
}

TEST(Precision, WorkersOnOneKindOfCpuShareTheirTimes) {
  // The second had its core taken away in the middle.
  const PrecisionChoice shared = judge(kBf16, {trial(1, 2), trial(5, 2.5)});
  EXPECT_EQ(shared.used, kBf16);
  EXPECT_EQ(shared.note, "");
  // The foil: another CPU, on which it is slower, and which the sentence names.
  const PrecisionChoice mixed = judge(kBf16, {trial(1, 2), trial(5, 2.5, "Old Xeon")});
  EXPECT_EQ(mixed.used, kFp32);
  EXPECT_NE(mixed.note.find("2.0 times as long as fp32 on Old Xeon"), std::string::npos) << mixed.note;
}

TEST(Precision, OneCpuWithoutTheInstructionsIsEnough) {
  const PrecisionChoice mixed = judge(kBf16, {trial(1, 2), trial(0, 0, "Old Xeon", false)});
  EXPECT_EQ(mixed.used, kFp32);
  EXPECT_NE(mixed.note.find("slower than fp32 on Old Xeon with this libtorch"), std::string::npos);
  EXPECT_NE(judge(kBf16, {trial(0, 0, "Old Xeon", false)}).note.find("on this CPU"), std::string::npos);
}

struct Nothing : nn::Model {
  using nn::Model::parameters;
  std::vector<tensor::NamedTensor> parameters(nn::LayerRange) const override { return {}; }
  void set_mode(nn::Mode) override {}
  int depth() const override { return 1; }
  at::Tensor forward(at::Tensor, const nn::Batch&, nn::LayerRange) override { return {}; }
  nn::Loss loss(const at::Tensor&, const nn::Batch&) const override { return {}; }
  bool own_products() const override { return true; }
};

TEST(Precision, OurProductsNeedTheirInstructions) {
  const nn::kernels::Kernels& chosen = nn::kernels::kernels();
  nn::kernels::use_kernels(*nn::kernels::supported_kernels().front());
  const PrecisionChoice without = choose_precision(kBf16, c10::kCPU, Nothing());
  EXPECT_EQ(without.used, kFp32);
  EXPECT_NE(without.note.find("slower than fp32 on this CPU"), std::string::npos) << without.note;
  nn::kernels::use_kernels(chosen);
  // The foil is a CPU that has them; there it must be a trial that decides.
  const PrecisionChoice here = choose_precision(kBf16, c10::kCPU, Nothing());
  EXPECT_EQ(here.note.find("with this libtorch") != std::string::npos, !chosen.half) << here.note;
  EXPECT_EQ(choose_precision(tensor::Precision::kFp16, c10::kCPU, Nothing()).used, kFp32);
}

}  // namespace
}  // namespace syncopate::run
