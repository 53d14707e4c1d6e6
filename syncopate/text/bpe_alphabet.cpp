// GPT-2's way to write bytes as characters: what prints stands for itself, the other bytes for the characters
// from U+0100 on.
#include <utf8proc.h>

#include <array>

#include "syncopate/text/bpe.h"

namespace syncopate::text {
namespace {

constexpr int32_t kShifted = 0x100;

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int32_t, kShifted + 256> bytes;  ///< by character; -1: stands for none
  std::vector<uint8_t> order;
};

bool prints(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

const Alphabet& alphabet() {
  static const Alphabet kAlphabet = [] {
    Alphabet made;
    made.bytes.fill(-1);
    const auto add = [&](int byte, int32_t character) {
      utf8proc_uint8_t text[4];
      const auto count = utf8proc_encode_char(character, text);
      made.characters[static_cast<size_t>(byte)].assign(reinterpret_cast<const char*>(text),
                                                        static_cast<size_t>(count));
      made.bytes[static_cast<size_t>(character)] = byte;
      made.order.push_back(static_cast<uint8_t>(byte));
    };
    for (int byte = 0; byte < 256; ++byte) {
      if (prints(byte)) add(byte, byte);
    }
    int32_t next = kShifted;
    for (int byte = 0; byte < 256; ++byte) {
      if (!prints(byte)) add(byte, next++);
    }
    return made;
  }();
  return kAlphabet;
}

}  // namespace

const std::string& bpe_character(uint8_t byte) { return alphabet().characters[byte]; }

const std::vector<uint8_t>& bpe_byte_order() { return alphabet().order; }

std::string bpe_bytes(std::string_view word) {
  const auto& table = alphabet().bytes;
  const auto* text = reinterpret_cast<const utf8proc_uint8_t*>(word.data());
  std::string bytes;
  for (size_t i = 0; i < word.size();) {
    int32_t character = 0;
    const auto used = utf8proc_iterate(text + i, static_cast<utf8proc_ssize_t>(word.size() - i), &character);
    const bool known = used > 0 && static_cast<size_t>(character) < table.size() &&
                       table[static_cast<size_t>(character)] >= 0;
    if (!known) return std::string(word);  // a word that was added by hand: it stands for itself
    bytes.push_back(static_cast<char>(table[static_cast<size_t>(character)]));
    i += static_cast<size_t>(used);
  }
  return bytes;
}

}  // namespace syncopate::text
