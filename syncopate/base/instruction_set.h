#pragma once

namespace syncopate {

/// What kernels are compiled for (cmake/kernels.cmake); each holds those before it.
enum class InstructionSet { kBaseline, kAvx2, kAvx512 };

/// The widest that this CPU and its operating system have: what the compiler was told to build for says
/// nothing about this machine.
InstructionSet widest_instruction_set();

}  // namespace syncopate
