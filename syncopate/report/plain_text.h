#pragma once

#include <string>
#include <string_view>

namespace syncopate::report {

/// UTF-8 with U+FFFD for every byte that is none: a path may hold any bytes, JSON and spreadsheets may not.
std::string utf8(std::string_view bytes);

/// In one line: control characters become spaces.
std::string one_line(std::string_view text);

}  // namespace syncopate::report
