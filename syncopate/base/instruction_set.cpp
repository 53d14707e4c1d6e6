#include "syncopate/base/instruction_set.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate {
namespace {

#ifdef __x86_64__
/// The system saves tiles when it switches threads, and lets this process use them. It is asked by number:
/// the C library's headers may be older than AMX.
bool may_use_tiles() {
  constexpr int kAskForState = 0x1023, kTileData = 18;
  constexpr unsigned kTileStates = 3u << 17;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileStates) == kTileStates && ::syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}

bool has_amx() {
  constexpr unsigned kTiles = 1u << 24, kTilesOfBf16 = 1u << 22;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & kTiles) != 0 && (edx & kTilesOfBf16) != 0 && may_use_tiles();
}
#endif

// Asks for every extension that the kernels' flags name.
InstructionSet find_widest() {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) {
    return InstructionSet::kBaseline;
  }
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!wide) return InstructionSet::kAvx2;
  if (!__builtin_cpu_supports("avx512bf16")) return InstructionSet::kAvx512;
  return has_amx() ? InstructionSet::kAmx : InstructionSet::kAvx512Bf16;
#else
  return InstructionSet::kBaseline;
#endif
}

InstructionSet widest_allowed() {
  const char* const given = std::getenv("SYNCOPATE_KERNELS");
  if (given == nullptr || *given == '\0') return InstructionSet::kAmx;
  static const std::vector<std::string> kNames{"baseline", "avx2", "avx512", "avx512_bf16", "amx"};
  const auto found = std::find(kNames.begin(), kNames.end(), given);
  if (found == kNames.end())
    throw ConfigError("SYNCOPATE_KERNELS names no set of kernels: \"{}\"{}", given,
                      suggestion(given, kNames));
  return static_cast<InstructionSet>(found - kNames.begin());
}

}  // namespace

InstructionSet widest_instruction_set() {
  static const InstructionSet kWidest = find_widest();
  return std::min(kWidest, widest_allowed());
}

}  // namespace syncopate
