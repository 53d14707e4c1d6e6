#pragma once

#include <string>
#include <string_view>

namespace syncopate {

/// A to Z in lower case; any other byte stays, whatever the locale.
constexpr char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

inline std::string lower_letters(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = lower_letter(c);
  return made;
}

}  // namespace syncopate
