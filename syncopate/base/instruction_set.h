#pragma once

namespace syncopate {

/// What kernels are compiled for (cmake/kernels.cmake); each holds those before it.
enum class InstructionSet { kBaseline, kAvx2, kAvx512 };

/// The widest set that this CPU and its operating system support, checked at run time.
InstructionSet widest_instruction_set();

}  // namespace syncopate
