#include "syncopate/base/instruction_set.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "syncopate/base/error.h"

namespace syncopate {
namespace {

TEST(InstructionSet, IsLimitedByTheEnvironment) {
  const char* const given = std::getenv("SYNCOPATE_KERNELS");
  const std::string before = given == nullptr ? "" : given;
  ::setenv("SYNCOPATE_KERNELS", "amx", 1);
  const InstructionSet widest = widest_instruction_set();
  ::setenv("SYNCOPATE_KERNELS", "baseline", 1);
  EXPECT_EQ(widest_instruction_set(), InstructionSet::kBaseline);
  ::setenv("SYNCOPATE_KERNELS", "avx2", 1);
  EXPECT_EQ(widest_instruction_set(), std::min(widest, InstructionSet::kAvx2));
  ::setenv("SYNCOPATE_KERNELS", "avx_512", 1);
  try {
    widest_instruction_set();
    ADD_FAILURE() << "a name that no set has";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"avx512\""), std::string::npos) << error.what();
  }
  ::setenv("SYNCOPATE_KERNELS", before.c_str(), 1);
}

}  // namespace
}  // namespace syncopate
