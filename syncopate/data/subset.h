#pragma once

#include <memory>
#include <vector>

#include "syncopate/data/dataset.h"

namespace syncopate::data {

/// Some examples of another data set, numbered anew from 0. What is random about an example stays what it is
/// there: it goes by the example's number in the other data set.
class Subset : public Dataset {
 public:
  /// `ids`: numbers in `whole`, in the order they get here; repeats are allowed.
  Subset(std::shared_ptr<const Dataset> whole, std::vector<int64_t> ids);

  int64_t size() const override { return static_cast<int64_t>(ids_.size()); }
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t draw) const override;
  int64_t length(int64_t id) const override;
  uint64_t fingerprint() const override;

 private:
  std::shared_ptr<const Dataset> whole_;
  std::vector<int64_t> ids_;
};

}  // namespace syncopate::data
