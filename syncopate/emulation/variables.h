#pragma once

namespace syncopate::emulation {

/// Where a program that runs inside a lab asks for the rest.
inline constexpr const char* kSocketVariable = "SYNCOPATE_LAB";
/// The process that the lab was made for, by its number there.
inline constexpr const char* kProgramVariable = "SYNCOPATE_LAB_PROGRAM";

}  // namespace syncopate::emulation
