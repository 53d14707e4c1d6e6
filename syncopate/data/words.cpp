#include "syncopate/data/words.h"

#include <utf8proc.h>

#include <string>
#include <vector>

#include "syncopate/data/characters.h"

namespace syncopate::data {
namespace {

constexpr int32_t kCapitalDottedI = 0x130;
constexpr int32_t kDotAbove = 0x307;

/// ASCII goes straight into the current word; other characters wait in `pending_` until a run of them is
/// complete, since canonical order is a matter of neighbours. An ASCII character never takes part in it.
class Splitter {
 public:
  Splitter(const TextRules& rules, const std::function<void(std::string_view)>& word)
      : rules_(rules), emit_(word) {}

  void run(std::string_view text) {
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    size_t i = 0;
    while (i < text.size()) {
      if (bytes[i] < 0x80) {
        ascii(bytes[i++]);
        continue;
      }
      int32_t character = 0;
      const auto used =
          utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &character);
      if (used > 0) clean(character);
      i += used > 0 ? static_cast<size_t>(used) : 1;
    }
    flush();
    end_word();
  }

 private:
  void ascii(unsigned char c) {
    const CharKind kind = kind_of(c);
    if (kind == CharKind::kDropped) return;
    if (!pending_.empty()) flush();
    if (kind == CharKind::kLetter) {
      word_.push_back(rules_.lower_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32)
                                                                : static_cast<char>(c));
    } else {
      place(c, kind);
    }
  }

  void clean(int32_t character) {
    const CharKind kind = kind_of(character);
    if (kind == CharKind::kDropped) return;
    if (kind == CharKind::kSpace) {
      pending_.push_back(' ');
    } else if (rules_.split_cjk && is_cjk(character)) {
      pending_.insert(pending_.end(), {' ', character, ' '});
    } else {
      pending_.push_back(character);
    }
  }

  void flush() {
    if (!rules_.strip_accents) {
      for (const int32_t c : pending_) lower_and_place(c);
    } else {
      decomposed_.clear();
      for (const int32_t c : pending_) append_decomposed(c, decomposed_);
      order_marks(decomposed_);
      for (const int32_t c : decomposed_) {
        if (kind_of(c) != CharKind::kMark) lower_and_place(c);
      }
    }
    pending_.clear();
  }

  void lower_and_place(int32_t c) {
    if (!rules_.lower_case) {
      place(c, kind_of(c));
    } else if (c == kCapitalDottedI) {
      place('i', CharKind::kLetter);
      place(kDotAbove, CharKind::kLetter);
    } else {
      const int32_t small = lower(c);
      place(small, kind_of(small));
    }
  }

  void place(int32_t c, CharKind kind) {
    if (kind == CharKind::kSpace || kind == CharKind::kPunctuation) end_word();
    if (kind == CharKind::kSpace) return;
    utf8proc_uint8_t bytes[4];
    const auto count = utf8proc_encode_char(c, bytes);
    word_.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
    if (kind == CharKind::kPunctuation) end_word();
  }

  void end_word() {
    if (word_.empty()) return;
    emit_(word_);
    word_.clear();
  }

  const TextRules& rules_;
  const std::function<void(std::string_view)>& emit_;
  std::string word_;
  std::vector<int32_t> pending_;
  std::vector<int32_t> decomposed_;
};

}  // namespace

void for_each_word(std::string_view text, const TextRules& rules,
                   const std::function<void(std::string_view)>& word) {
  Splitter(rules, word).run(text);
}

}  // namespace syncopate::data
