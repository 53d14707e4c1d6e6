#pragma once

#include <array>
#include <functional>
#include <iterator>
#include <utility>

#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// Collects what is read into batches, one for each split: a Batch has a `split`, `add`, `full` and `empty`.
template <typename Batch>
class SplitBatches {
 public:
  explicit SplitBatches(const std::function<void(Batch)>& use) : use_(use) {
    for (const Split split : kSplits) of(split).split = split;
  }
  template <typename Item>
  void add(Split split, const Item& item) {
    of(split).add(item);
    if (of(split).full()) give(split);
  }
  void finish() {
    for (const Split split : kSplits) give(split);
  }

 private:
  Batch& of(Split split) { return batches_[static_cast<size_t>(split)]; }
  void give(Split split) {
    if (of(split).empty()) return;
    Batch next;
    next.split = split;
    use_(std::exchange(of(split), std::move(next)));
  }

  const std::function<void(Batch)>& use_;
  std::array<Batch, std::size(kSplits)> batches_;
};

}  // namespace syncopate::corpora
