#include "syncopate/codec/kernels/kernels.h"

namespace syncopate::codec::kernels {

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
  // Asks the CPU and the operating system: what the compiler was told to build for says nothing about this
  // machine.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
    sets.push_back(&avx2::table);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      sets.push_back(&avx512::table);
    }
  }
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

}  // namespace syncopate::codec::kernels
