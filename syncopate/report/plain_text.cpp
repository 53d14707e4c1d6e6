#include "syncopate/report/plain_text.h"

#include <utf8proc.h>

#include <algorithm>

namespace syncopate::report {

std::string utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    // Nearly all of it is ASCII, and goes over whole.
    const size_t plain =
        static_cast<size_t>(std::find_if(bytes.begin(), bytes.end(),
                                         [](char c) { return static_cast<unsigned char>(c) >= 128; }) -
                            bytes.begin());
    text += bytes.substr(0, plain);
    bytes.remove_prefix(plain);
    if (bytes.empty()) break;
    utf8proc_int32_t character = -1;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                                         static_cast<utf8proc_ssize_t>(bytes.size()), &character);
    const size_t taken = length > 0 ? static_cast<size_t>(length) : 1;
    // The last two are characters to some and none to XML.
    text += length > 0 && character != 0xFFFE && character != 0xFFFF ? bytes.substr(0, taken)
                                                                     : std::string_view("\uFFFD");
    bytes.remove_prefix(taken);
  }
  return text;
}

std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& letter : line) {
    if (static_cast<unsigned char>(letter) < 32 || letter == 127) letter = ' ';
  }
  return line;
}

}  // namespace syncopate::report
