#include "syncopate/base/instruction_set.h"
#include "syncopate/nn/kernels/kernels.h"

namespace syncopate::nn::kernels {

// One table for each instruction set that the build made; see cmake/kernels.cmake.
namespace baseline {
extern const Kernels table;
}
#ifdef SYNCOPATE_X86_KERNELS
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#endif

std::vector<const Kernels*> supported_kernels() {
  std::vector<const Kernels*> sets = {&baseline::table};
#ifdef SYNCOPATE_X86_KERNELS
  if (widest_instruction_set() >= InstructionSet::kAvx2) sets.push_back(&avx2::table);
  if (widest_instruction_set() >= InstructionSet::kAvx512) sets.push_back(&avx512::table);
#endif
  return sets;
}

namespace {

const Kernels*& chosen() {
  static const Kernels* set = supported_kernels().back();
  return set;
}

}  // namespace

const Kernels& kernels() { return *chosen(); }

void use_kernels(const Kernels& set) { chosen() = &set; }

}  // namespace syncopate::nn::kernels
