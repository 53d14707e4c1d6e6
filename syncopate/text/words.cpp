#include "syncopate/text/words.h"

#include <utf8proc.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "syncopate/text/characters.h"

namespace syncopate::text {
namespace {

/// ASCII goes straight into the current word; other characters wait in `pending_` until a run of them is
/// complete, since canonical order is a matter of neighbours. An ASCII character never takes part in it.
/// Only where `kPlaced` does it note whence the bytes of a word come: training has no use for that.
template <bool kPlaced>
class Splitter {
 public:
  using Emit = std::conditional_t<kPlaced, std::function<void(std::string_view, std::span<const ByteRange>)>,
                                  std::function<void(std::string_view)>>;
  Splitter(const TextRules& rules, const Emit& word) : rules_(rules), emit_(word) {}

  void run(std::string_view text) {
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    size_t i = 0;
    while (i < text.size()) {
      if (bytes[i] < 0x80) {
        ascii(bytes[i], i);
        ++i;
        continue;
      }
      int32_t character = 0;
      const auto used =
          utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &character);
      if (used > 0) clean(character, i, i + static_cast<size_t>(used));
      i += used > 0 ? static_cast<size_t>(used) : 1;
    }
    flush();
    end_word();
  }

 private:
  void ascii(unsigned char c, size_t at) {
    const CharKind kind = kind_of(c);
    if (kind == CharKind::kDropped) return;
    if (!pending_.empty()) flush();
    if constexpr (kPlaced) here_ = {static_cast<int64_t>(at), static_cast<int64_t>(at + 1)};
    if (kind == CharKind::kLetter) {
      word_.push_back(rules_.lower_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32)
                                                                : static_cast<char>(c));
      if constexpr (kPlaced) places_.push_back(here_);
    } else {
      place(c, kind);
    }
  }

  void clean(int32_t character, size_t begin, size_t end) {
    const CharKind kind = kind_of(character);
    if (kind == CharKind::kDropped) return;
    if (kind == CharKind::kSpace) {
      pending_.push_back(' ');
    } else if (rules_.split_cjk && is_cjk(character)) {
      pending_.insert(pending_.end(), {' ', character, ' '});
    } else {
      pending_.push_back(character);
    }
    if constexpr (kPlaced) {
      pending_places_.resize(pending_.size(), {static_cast<int64_t>(begin), static_cast<int64_t>(end)});
    }
  }

  void flush() {
    if (!rules_.strip_accents) {
      for (size_t i = 0; i < pending_.size(); ++i) {
        if constexpr (kPlaced) here_ = pending_places_[i];
        lower_and_place(pending_[i]);
      }
    } else {
      decompose();
      // Marks change places among themselves, their places in the text do not: those must not go back.
      order_marks(decomposed_);
      for (size_t i = 0; i < decomposed_.size(); ++i) {
        if constexpr (kPlaced) here_ = decomposed_places_[i];
        if (kind_of(decomposed_[i]) != CharKind::kMark) {
          lower_and_place(decomposed_[i]);
        } else if constexpr (kPlaced) {
          if (!places_.empty()) places_.back().end = std::max(places_.back().end, here_.end);
        }
      }
    }
    pending_.clear();
    if constexpr (kPlaced) pending_places_.clear();
  }

  void decompose() {
    decomposed_.clear();
    if constexpr (kPlaced) decomposed_places_.clear();
    for (size_t i = 0; i < pending_.size(); ++i) {
      append_decomposed(pending_[i], decomposed_);
      if constexpr (kPlaced) decomposed_places_.resize(decomposed_.size(), pending_places_[i]);
    }
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
    if constexpr (kPlaced) places_.resize(word_.size(), here_);
    if (kind == CharKind::kPunctuation) end_word();
  }

  void end_word() {
    if (word_.empty()) return;
    if constexpr (kPlaced) {
      emit_(word_, places_);
      places_.clear();
    } else {
      emit_(word_);
    }
    word_.clear();
  }

  const TextRules& rules_;
  const Emit& emit_;
  std::string word_;
  std::vector<int32_t> pending_;
  std::vector<int32_t> decomposed_;
  ByteRange here_;  ///< of the character at hand; this and what follows is unused unless kPlaced
  std::vector<ByteRange> places_, pending_places_,
      decomposed_places_;  ///< beside word_, pending_, decomposed_
};

}  // namespace

void for_each_word(std::string_view text, const TextRules& rules,
                   const std::function<void(std::string_view)>& word) {
  Splitter<false>(rules, word).run(text);
}

void for_each_placed_word(std::string_view text, const TextRules& rules,
                          const std::function<void(std::string_view, std::span<const ByteRange>)>& word) {
  Splitter<true>(rules, word).run(text);
}

}  // namespace syncopate::text
