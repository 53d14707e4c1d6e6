#include "syncopate/base/kernel_choice.h"

#include "syncopate/nn/kernels/kernels.h"

namespace syncopate::nn::kernels {
namespace {

KernelChoice<Kernels>& choice() {
  static KernelChoice<Kernels> made{
      {InstructionSet::kBaseline, &baseline::table},
#ifdef SYNCOPATE_X86_KERNELS
      {InstructionSet::kAvx2, &avx2::table},
      {InstructionSet::kAvx512, &avx512::table},
      {InstructionSet::kAvx512Bf16, &avx512_bf16::table},
      {InstructionSet::kAmx, &amx::table},
#endif
  };
  return made;
}

}  // namespace

std::vector<const Kernels*> supported_kernels() { return choice().supported(); }
const Kernels& kernels() { return choice().chosen(); }
void use_kernels(const Kernels& set) { choice().choose(set); }

}  // namespace syncopate::nn::kernels
