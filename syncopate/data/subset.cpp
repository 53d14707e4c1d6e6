#include "syncopate/data/subset.h"

#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"

namespace syncopate::data {

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<int64_t> ids)
    : whole_(std::move(whole)), ids_(std::move(ids)) {
  check(whole_ != nullptr, "a subset is one of a data set");
  for (const int64_t id : ids_) check(id >= 0 && id < whole_->size(), "a subset's examples are in the whole");
}

tensor::Batch Subset::collate(std::span<const int64_t> ids, uint64_t draw) const {
  std::vector<int64_t> inner;
  inner.reserve(ids.size());
  for (const int64_t id : ids) {
    check(id >= 0 && id < size(), "an example's number is within its data set");
    inner.push_back(ids_[static_cast<size_t>(id)]);
  }
  tensor::Batch batch = whole_->collate(inner, draw);
  batch.ids.assign(ids.begin(), ids.end());
  return batch;
}

int64_t Subset::length(int64_t id) const {
  check(id >= 0 && id < size(), "an example's number is within its data set");
  return whole_->length(ids_[static_cast<size_t>(id)]);
}

uint64_t Subset::fingerprint() const { return checksum_of(ids_, whole_->fingerprint()); }

}  // namespace syncopate::data
