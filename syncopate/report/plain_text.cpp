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
  // Controls of a terminal and marks that turn the order of letters round: in UTF-8, U+0080 to U+009F are
  // C2 80 to C2 9F, U+202A to U+202E are E2 80 AA to AE, U+2066 to U+2069 are E2 81 A6 to A9.
  const auto hidden = [&](size_t at) -> size_t {
    const auto byte = [&](size_t i) {
      return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
    };
    const unsigned char second = byte(at + 1), third = byte(at + 2);
    if (byte(at) == 0xC2 && second >= 0x80 && second <= 0x9F) return 2;
    if (byte(at) != 0xE2) return 0;
    if (second == 0x80 && third >= 0xAA && third <= 0xAE) return 3;
    return second == 0x81 && third >= 0xA6 && third <= 0xA9 ? 3 : 0;
  };
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (const size_t skipped = hidden(i); skipped > 0) {
      i += skipped;
      continue;
    }
    const auto letter = static_cast<unsigned char>(text[i]);
    line += letter < 32 || letter == 127 ? ' ' : text[i];
    ++i;
  }
  return line;
}

}  // namespace syncopate::report
