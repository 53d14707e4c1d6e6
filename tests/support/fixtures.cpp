#include "tests/support/fixtures.h"

namespace syncopate::test {

std::vector<std::string> vocabulary_of(const std::vector<std::string>& more) {
  std::vector<std::string> words{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string mutate(std::string text, Rng& rng) {
  for (uint64_t damages = 1 + rng.below(4); damages > 0; --damages) {
    const size_t at = rng.below(text.size() + 1);
    switch (rng.below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(rng.below(256));
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(rng.below(256)));
        break;
      case 2:
        text.erase(at, rng.below(20));
        break;
      case 3:
        text.insert(at, text.substr(rng.below(text.size() + 1), rng.below(30)));
        break;
      case 4:
        text.resize(at);
        break;
      case 5: {
        constexpr const char* kAwkward[] = {"\t",           "\n", "\r\n", "|",        "[",        "[CLS]",
                                            "##",           "  ", "\0",   "\xEF\xBF", "\xCC\x81", "\xF0",
                                            "\xE4\xB8\xAD", "99", "-1",   "\""};
        text.insert(at, kAwkward[rng.below(16)]);
        break;
      }
      default:
        text.insert(at, std::string(rng.below(300), static_cast<char>(rng.below(256))));
        break;
    }
  }
  return text;
}

}  // namespace syncopate::test
