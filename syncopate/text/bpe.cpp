#include "syncopate/text/bpe.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "syncopate/base/error.h"
#include "syncopate/text/bpe_words.h"

namespace syncopate::text {
namespace {

constexpr size_t kLongestRemembered = 64;  // bytes; longer words hardly come again
constexpr size_t kMostRemembered = size_t{1} << 20;

uint64_t merge_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

ByteBpe::ByteBpe(BpeTable table, const BpeOrigin& origin) : table_(std::move(table)) {
  std::unordered_map<std::string_view, int32_t> numbers;
  numbers.reserve(table_.words.size() * 2);
  bytes_.reserve(table_.words.size());
  for (const std::string& word : table_.words) {
    const auto [earlier, fresh] = numbers.emplace(word, static_cast<int32_t>(bytes_.size()));
    if (!fresh) {
      throw DataError("{}: the word \"{}\" is number {} and number {}; remove one of them", origin.words,
                      word.substr(0, 60), earlier->second, bytes_.size());
    }
    bytes_.push_back(bpe_bytes(word));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = numbers.find(bpe_character(static_cast<uint8_t>(byte)));
    if (found == numbers.end()) {
      throw DataError("{}: the byte {:#04x} (\"{}\") is missing; a byte-level BPE has all 256 bytes",
                      origin.words, byte, bpe_character(static_cast<uint8_t>(byte)));
    }
    byte_ids_[byte] = found->second;
  }
  if (const auto found = numbers.find(kEndOfText); found != numbers.end()) end_of_text_ = found->second;

  merges_.reserve(table_.merges.size() * 2);
  for (size_t rank = 0; rank < table_.merges.size(); ++rank) {
    const auto& [left, right] = table_.merges[rank];
    const int64_t line = origin.first_line + static_cast<int64_t>(rank);
    const auto number = [&](const std::string& word) {
      const auto found = numbers.find(word);
      if (found == numbers.end()) {
        throw DataError(
            "{}:{}: the merge \"{} {}\" needs the word \"{}\", which {} does not hold; use files "
            "that belong together",
            origin.merges, line, left.substr(0, 60), right.substr(0, 60), word.substr(0, 60), origin.words);
      }
      return found->second;
    };
    const uint64_t key = merge_key(number(left), number(right));
    const auto [earlier, fresh] =
        merges_.emplace(key, Merge{static_cast<int32_t>(rank), number(left + right)});
    if (!fresh) {
      throw DataError("{}:{}: the merge \"{} {}\" is already in line {}; remove one of them", origin.merges,
                      line, left.substr(0, 60), right.substr(0, 60),
                      origin.first_line + earlier->second.rank);
    }
  }
}

const ByteBpe::Merge* ByteBpe::merge_of(int32_t left, int32_t right) const {
  const auto found = merges_.find(merge_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

/// The pieces form a list; a queue holds the joins that neighbours allow, so that a word of n bytes costs
/// n log n: any bytes are a text, and a text may be one word.
void ByteBpe::append_word(std::string_view word, std::vector<int32_t>& into) const {
  struct Piece {
    int32_t id;  ///< -1: joined to the piece before it
    size_t previous, next;
  };
  struct Join {
    int32_t rank;
    size_t at;
    int32_t left, right, joined;
    bool operator>(const Join& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  const size_t end = word.size();
  std::vector<Piece> pieces(end);
  std::priority_queue<Join, std::vector<Join>, std::greater<>> joins;
  const auto offer = [&](size_t at) {
    if (at >= end || pieces[at].next >= end) return;
    const int32_t left = pieces[at].id, right = pieces[pieces[at].next].id;
    if (const Merge* merge = merge_of(left, right)) joins.push({merge->rank, at, left, right, merge->joined});
  };
  for (size_t i = 0; i < end; ++i)
    pieces[i] = {byte_ids_[static_cast<unsigned char>(word[i])], i == 0 ? end : i - 1, i + 1};
  for (size_t i = 0; i < end; ++i) offer(i);
  while (!joins.empty()) {
    const Join join = joins.top();
    joins.pop();
    Piece& piece = pieces[join.at];
    const bool stale = piece.id != join.left || piece.next >= end || pieces[piece.next].id != join.right;
    if (stale) continue;
    pieces[piece.next].id = -1;
    piece.id = join.joined;
    piece.next = pieces[piece.next].next;
    if (piece.next < end) pieces[piece.next].previous = join.at;
    offer(join.at);
    offer(piece.previous);
  }
  for (size_t i = 0; i < end; i = pieces[i].next) into.push_back(pieces[i].id);
}

void ByteBpe::encode_part(std::string_view text, Memory& memory, std::vector<int32_t>& into) const {
  BpeWords words(text);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word.size() > kLongestRemembered) {
      append_word(word, into);
      continue;
    }
    auto place = memory.places_.find(word);
    if (place == memory.places_.end()) {
      if (memory.places_.size() >= kMostRemembered) memory = {};
      const auto start = static_cast<uint32_t>(memory.ids_.size());
      append_word(word, memory.ids_);
      const auto count = static_cast<uint32_t>(memory.ids_.size()) - start;
      place = memory.places_.emplace(std::string(word), std::pair{start, count}).first;
    }
    const auto first = memory.ids_.begin() + place->second.first;
    into.insert(into.end(), first, first + place->second.second);
  }
}

void ByteBpe::encode(std::string_view text, Memory& memory, std::vector<int32_t>& into) const {
  if (end_of_text_) {
    for (size_t found = text.find(kEndOfText); found != text.npos; found = text.find(kEndOfText)) {
      encode_part(text.substr(0, found), memory, into);
      into.push_back(*end_of_text_);
      text.remove_prefix(found + kEndOfText.size());
    }
  }
  encode_part(text, memory, into);
}

std::vector<int32_t> ByteBpe::encode(std::string_view text) const {
  Memory memory;
  std::vector<int32_t> ids;
  encode(text, memory, ids);
  return ids;
}

const std::string& ByteBpe::token(int64_t id) const {
  if (id < 0 || id >= size()) {
    throw DataError("word number {} is outside the vocabulary of {} words; use the model's own vocab.json",
                    id, size());
  }
  return table_.words[static_cast<size_t>(id)];
}

std::string ByteBpe::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    token(id);  // refuses what is outside
    text += bytes_[static_cast<size_t>(id)];
  }
  return text;
}

}  // namespace syncopate::text
