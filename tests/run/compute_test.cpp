#include "syncopate/run/compute.h"

#include <gtest/gtest.h>

namespace syncopate::run {
namespace {

constexpr CpuFeatures kOld{}, kAvx{.avx = true}, kAvx2{.avx = true, .avx2_fma = true},
    kAvx512{.avx = true, .avx2_fma = true, .avx512 = true};

TEST(CoreType, CorrectsACoreTypeThatIsTooOld) {
  EXPECT_EQ(better_core_type("Prescott", kAvx512), "SkylakeX");
  EXPECT_EQ(better_core_type("Prescott", kAvx2), "Haswell");
  EXPECT_EQ(better_core_type("Core2", kAvx), "Sandybridge");
  EXPECT_EQ(better_core_type("Haswell", kAvx512), "SkylakeX") << "Zen 5, by a library older than it";
  EXPECT_EQ(better_core_type("Zen", kAvx512), "SkylakeX");
}

TEST(CoreType, KeepsASuitableCoreType) {
  EXPECT_EQ(better_core_type("SkylakeX", kAvx512), std::nullopt);
  EXPECT_EQ(better_core_type("Cooperlake", kAvx512), std::nullopt);
  EXPECT_EQ(better_core_type("Zen", kAvx2), std::nullopt);
  EXPECT_EQ(better_core_type("Prescott", kOld), std::nullopt);
}

TEST(CoreType, KeepsVectorsThatTheUserAskedFor) {
  EXPECT_EQ(better_core_type("Haswell", kAvx512, true), std::nullopt);
  EXPECT_EQ(better_core_type("Haswell", kAvx, true), "Sandybridge") << "which this CPU lacks";
  EXPECT_EQ(better_core_type("Prescott", kAvx512, true), "SkylakeX") << "which has none";
}

TEST(CoreType, NeverSelectsMissingInstructions) {
  EXPECT_EQ(better_core_type("SkylakeX", kAvx2), "Haswell");
  EXPECT_EQ(better_core_type("Cooperlake", kAvx), "Sandybridge");
  EXPECT_EQ(better_core_type("Haswell", kAvx), "Sandybridge");
  EXPECT_EQ(better_core_type("SkylakeX", kOld), "Nehalem");
}

TEST(ComputeSetup, DescribesTheSetup) {
  const ComputeSetup setup = set_up_compute(1);
  EXPECT_EQ(setup.threads, 1);
  EXPECT_FALSE(setup.cpu.empty());
  EXPECT_NE(setup.sentence().find("1 thread per worker"), std::string::npos) << setup.sentence();
  EXPECT_EQ(default_threads(4), 1);
  EXPECT_GE(default_threads(1), 1);
}

}  // namespace
}  // namespace syncopate::run
