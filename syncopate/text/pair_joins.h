#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace syncopate::text {

/// A word as the numbers of its pieces, and how often the texts hold it.
struct SpelledWord {
  std::vector<int32_t> pieces;
  int64_t count = 0;
};

/// How vocabularies are learned: the most frequent pair of neighbouring pieces is joined, again and again.
/// Counts are kept up to date word by word, so a join costs what it changes.
class PairJoins {
 public:
  struct Pair {
    int32_t left;
    int32_t right;
  };

  /// Pairs seen less than `min_count` times (at least once) are not joined.
  PairJoins(std::vector<SpelledWord> words, int64_t min_count);

  /// The most frequent pair, of equal ones the one with the smallest numbers; nothing when none is left. It
  /// is given once: join it.
  std::optional<Pair> take_best();

  /// Replaces the pair by the piece `joined` in all words.
  void join(Pair pair, int32_t joined);

 private:
  using Key = uint64_t;  ///< left piece in the upper half, right piece in the lower

  struct Seen {
    int64_t count = 0;
    std::vector<size_t> words;  ///< where it has been seen; may name a word twice or one that lost it
  };

  struct Candidate {
    int64_t count;
    Key key;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  void add_pairs(size_t word, int64_t count);
  void announce_changes();

  std::vector<SpelledWord> words_;
  int64_t min_count_;
  std::unordered_map<Key, Seen> pairs_;
  std::unordered_set<Key> changed_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace syncopate::text
