#include "syncopate/text/wordpiece.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/text/characters.h"
#include "syncopate/text/encoding.h"

namespace syncopate::text {
namespace {

constexpr int64_t kLongestWord = 100;  // characters

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// How many pieces of each text stay when both may take `room` together, as transformers' `longest_first`:
/// the shorter text stays whole if it can; else both get half and the longer one (the second, if equal) the
/// odd place.
std::pair<size_t, size_t> longest_first(size_t first, size_t second, size_t room) {
  if (first + second <= room) return {first, second};
  const bool first_is_longer = first > second;
  size_t shorter = std::min(first, second);
  size_t longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = room - shorter;
  }
  return first_is_longer ? std::pair{longer, shorter} : std::pair{shorter, longer};
}

}  // namespace

WordPiece::WordPiece(std::vector<std::string> words, TextRules rules, const std::string& origin)
    : words_(std::move(words)), rules_(rules) {
  if (words_.empty()) throw DataError("{} is empty; give a vocab.txt with one word a line", origin);
  starts_.reserve(words_.size() * 2);
  inner_.reserve(words_.size());
  for (size_t i = 0; i < words_.size(); ++i) {
    const std::string_view word = words_[i];
    if (word.empty())
      throw DataError("{}:{}: the line is empty; a vocabulary has one word a line", origin, i + 1);
    if (first_not_utf8(word) != std::string_view::npos)
      throw DataError("{}:{}: the word is not UTF-8; save the file as UTF-8", origin, i + 1);
    const auto id = static_cast<int32_t>(i);
    const auto [earlier, fresh] = starts_.emplace(word, id);
    if (!fresh) {
      throw DataError("{}:{}: the word \"{}\" is already in line {}; remove one of them", origin, i + 1,
                      word.substr(0, 60), earlier->second + 1);
    }
    longest_start_ = std::max(longest_start_, word.size());
    if (word.starts_with("##") && word.size() > 2) {
      inner_.emplace(word.substr(2), id);
      longest_inner_ = std::max(longest_inner_, word.size() - 2);
    }
  }
  pad_ = special("[PAD]", origin);
  unk_ = special("[UNK]", origin);
  cls_ = special("[CLS]", origin);
  sep_ = special("[SEP]", origin);
  mask_ = special("[MASK]", origin);
}

int32_t WordPiece::special(std::string_view word, const std::string& origin) const {
  const auto found = starts_.find(word);
  if (found == starts_.end()) {
    throw DataError("{}: the word {} is missing; a BERT vocabulary has [PAD] [UNK] [CLS] [SEP] [MASK]",
                    origin, word);
  }
  return found->second;
}

template <typename Plain, typename Special>
void WordPiece::for_each_stretch(std::string_view text, const Plain& plain, const Special& special) const {
  const std::array<int32_t, 5> specials{pad_, unk_, cls_, sep_, mask_};
  size_t start = 0;
  for (size_t bracket = text.find('['); bracket != text.npos; bracket = text.find('[', bracket + 1)) {
    for (const int32_t id : specials) {
      const std::string& name = words_[static_cast<size_t>(id)];
      if (!text.substr(bracket).starts_with(name)) continue;
      plain(start, bracket);
      start = bracket + name.size();
      special(id, bracket, start);
      break;
    }
  }
  plain(start, text.size());
}

std::vector<int32_t> WordPiece::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 1);
  const std::function<void(std::string_view)> word = [&](std::string_view w) { append_pieces(w, ids); };
  for_each_stretch(
      text, [&](size_t begin, size_t end) { for_each_word(text.substr(begin, end - begin), rules_, word); },
      [&](int32_t id, size_t, size_t) { ids.push_back(id); });
  return ids;
}

std::vector<Piece> WordPiece::encode_with_offsets(std::string_view text) const {
  std::vector<Piece> pieces;
  std::vector<int32_t> ids;
  int64_t base = 0;
  const std::function<void(std::string_view, std::span<const ByteRange>)> word =
      [&](std::string_view w, std::span<const ByteRange> places) {
        ids.clear();
        append_pieces(w, ids);
        size_t at = 0;
        for (const int32_t id : ids) {
          const size_t marker = at == 0 ? 0 : 2;  // the ## is no part of the word
          const size_t length = id == unk_ ? w.size() : words_[static_cast<size_t>(id)].size() - marker;
          pieces.push_back({id, base + places[at].begin, base + places[at + length - 1].end});
          at += length;
        }
      };
  for_each_stretch(
      text,
      [&](size_t begin, size_t end) {
        base = static_cast<int64_t>(begin);
        for_each_placed_word(text.substr(begin, end - begin), rules_, word);
      },
      [&](int32_t id, size_t begin, size_t end) {
        pieces.push_back({id, static_cast<int64_t>(begin), static_cast<int64_t>(end)});
      });
  return pieces;
}

void WordPiece::append_pieces(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.size() > static_cast<size_t>(kLongestWord)) {
    const auto characters =
        word.size() - static_cast<size_t>(std::count_if(word.begin(), word.end(), is_continuation));
    if (characters > static_cast<size_t>(kLongestWord)) {
      ids.push_back(unk_);
      return;
    }
  }
  const size_t before = ids.size();
  size_t start = 0;
  while (start < word.size()) {
    const auto& table = start == 0 ? starts_ : inner_;
    size_t length = std::min(word.size() - start, start == 0 ? longest_start_ : longest_inner_);
    auto found = table.end();
    for (; length > 0; --length) {
      if (start + length < word.size() && is_continuation(word[start + length])) continue;
      found = table.find(word.substr(start, length));
      if (found != table.end()) break;
    }
    if (length == 0) {
      ids.resize(before);
      ids.push_back(unk_);
      return;
    }
    ids.push_back(found->second);
    start += length;
  }
}

Encoding WordPiece::encode(std::string_view text, std::optional<std::string_view> pair, int64_t max_length,
                           bool add_special) const {
  std::vector<int32_t> first = encode(text);
  std::vector<int32_t> second = pair ? encode(*pair) : std::vector<int32_t>{};
  const int64_t added = !add_special ? 0 : pair ? 3 : 2;
  if (max_length != 0) {
    if (max_length < std::max<int64_t>(added, 1)) {
      throw ConfigError("max_length must be {} or more, got {}", std::max<int64_t>(added, 1), max_length);
    }
    const auto [keep_first, keep_second] =
        longest_first(first.size(), second.size(), static_cast<size_t>(max_length - added));
    first.resize(pair ? keep_first : std::min(first.size(), static_cast<size_t>(max_length - added)));
    if (pair) second.resize(keep_second);
  }
  Encoding encoding;
  encoding.ids.reserve(first.size() + second.size() + 3);
  if (add_special) encoding.ids.push_back(cls_);
  encoding.ids.insert(encoding.ids.end(), first.begin(), first.end());
  if (add_special) encoding.ids.push_back(sep_);
  encoding.types.assign(encoding.ids.size(), 0);
  encoding.ids.insert(encoding.ids.end(), second.begin(), second.end());
  if (add_special && pair) encoding.ids.push_back(sep_);
  encoding.types.resize(encoding.ids.size(), 1);
  return encoding;
}

const std::string& WordPiece::token(int64_t id) const {
  if (id < 0 || id >= size()) {
    throw DataError("word number {} is outside the vocabulary of {} words; use the model's own vocab.txt", id,
                    size());
  }
  return words_[static_cast<size_t>(id)];
}

}  // namespace syncopate::text
