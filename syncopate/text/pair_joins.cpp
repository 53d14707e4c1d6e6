#include "syncopate/text/pair_joins.h"

#include <algorithm>
#include <utility>

namespace syncopate::text {
namespace {

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

PairJoins::PairJoins(std::vector<SpelledWord> words, int64_t min_count)
    : words_(std::move(words)), min_count_(std::max<int64_t>(min_count, 1)) {
  for (size_t w = 0; w < words_.size(); ++w) add_pairs(w, words_[w].count);
  announce_changes();
}

std::optional<PairJoins::Pair> PairJoins::take_best() {
  while (!queue_.empty()) {
    const Candidate best = queue_.top();
    queue_.pop();
    const auto seen = pairs_.find(best.key);
    const bool stale = seen == pairs_.end() || seen->second.count != best.count;  // a newer entry is queued
    if (!stale)
      return Pair{static_cast<int32_t>(best.key >> 32), static_cast<int32_t>(best.key & 0xFFFFFFFF)};
  }
  return std::nullopt;
}

void PairJoins::join(Pair pair, int32_t joined) {
  const Key key = key_of(pair.left, pair.right);
  const std::vector<size_t> places = std::move(pairs_[key].words);
  std::vector<int32_t> pieces;
  for (const size_t w : places) {
    const std::vector<int32_t>& old = words_[w].pieces;
    pieces.clear();
    for (size_t i = 0; i < old.size(); ++i) {
      const bool here = i + 1 < old.size() && old[i] == pair.left && old[i + 1] == pair.right;
      pieces.push_back(here ? joined : old[i]);
      if (here) ++i;
    }
    if (pieces.size() == old.size()) continue;
    add_pairs(w, -words_[w].count);
    words_[w].pieces = pieces;
    add_pairs(w, words_[w].count);
  }
  pairs_.erase(key);
  announce_changes();
}

void PairJoins::add_pairs(size_t word, int64_t count) {
  const std::vector<int32_t>& pieces = words_[word].pieces;
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    const Key key = key_of(pieces[i], pieces[i + 1]);
    Seen& seen = pairs_[key];
    seen.count += count;
    if (count > 0 && (seen.words.empty() || seen.words.back() != word)) seen.words.push_back(word);
    changed_.insert(key);
  }
}

void PairJoins::announce_changes() {
  for (const Key key : changed_) {
    const auto seen = pairs_.find(key);
    if (seen != pairs_.end() && seen->second.count >= min_count_) queue_.push({seen->second.count, key});
  }
  changed_.clear();
}

}  // namespace syncopate::text
