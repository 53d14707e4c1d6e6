#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

// Python's str, as far as scores defined by Python scripts depend on it.
namespace syncopate::text {

/// The code points of a text; bytes that are not UTF-8 are left out.
std::vector<int32_t> code_points_of(std::string_view text);

/// str.lower(): U+0130 becomes two characters, a capital sigma at the end of a word a final one.
std::vector<int32_t> python_lower(const std::vector<int32_t>& text);

bool python_is_space(int32_t character);  ///< str.isspace(), which str.split() goes by
bool python_is_word(int32_t character);   ///< \w of the module re

}  // namespace syncopate::text
