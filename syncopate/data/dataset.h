#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "syncopate/tensor/batch.h"

namespace syncopate::data {

/// The draw of every evaluation: scores do not depend on when or by how many workers they are taken.
inline constexpr uint64_t kEvaluationDraw = 0;

/// Examples numbered 0..size()-1 that can be joined to batches. Immutable once made: any number of threads
/// may collate at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;

  /// The examples `ids`, in that order, as one batch whose `ids` are these (the loader sets them where they
  /// are left empty). Numbers may repeat; none at all gives a batch of size 0 whose fields have 0 rows.
  /// `draw` decides whatever is random about an example (masks, crops): the same draw and id give the same,
  /// on any worker and in any batch.
  virtual tensor::Batch collate(std::span<const int64_t> ids, uint64_t draw) const = 0;

  /// Tokens of an example, special ones included; 0 where examples do not differ, or hardly.
  virtual int64_t length(int64_t) const { return 0; }

  /// A checksum of what it holds, in this order; not of how batches are drawn from it. 0: not known.
  virtual uint64_t fingerprint() const { return 0; }
};

/// Begins a batch of texts: sets its ids and real tokens; returns the length of the longest. `length(id)`:
/// tokens of an example, special ones included.
template <typename Length>
int64_t start_texts(std::span<const int64_t> ids, const Length& length, tensor::Batch& batch) {
  batch.ids.assign(ids.begin(), ids.end());
  int64_t longest = 0;
  for (const int64_t id : ids) {
    const int64_t tokens = length(id);
    longest = std::max(longest, tokens);
    batch.real_tokens += tokens;
  }
  return longest;
}

}  // namespace syncopate::data
