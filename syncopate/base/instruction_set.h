#pragma once

namespace syncopate {

/// What kernels are compiled for (cmake/kernels.cmake); each holds those before it. The last two have
/// products of bf16: of vectors, and of tiles.
enum class InstructionSet { kBaseline, kAvx2, kAvx512, kAvx512Bf16, kAmx };

/// The widest set that this CPU and its operating system support, checked at run time. The environment
/// variable SYNCOPATE_KERNELS (baseline, avx2, avx512, avx512_bf16, amx) allows none beyond the one it names;
/// throws ConfigError where it names another.
InstructionSet widest_instruction_set();

}  // namespace syncopate
