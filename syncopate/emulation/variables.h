#pragma once

namespace syncopate::emulation {

/// Where a program that runs inside a lab asks for the rest.
inline constexpr const char* kSocketVariable = "SYNCOPATE_LAB";

}  // namespace syncopate::emulation
