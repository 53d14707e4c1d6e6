#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// A part for each rank, all alike, or one for all, that all of them see.
class ShmWindow {
 public:
  ShmWindow(std::byte* base, int64_t each, int parts) : base_(base), each_(each), parts_(parts) {}
  ~ShmWindow();
  ShmWindow(const ShmWindow&) = delete;
  ShmWindow& operator=(const ShmWindow&) = delete;
  std::byte* part(int number) const { return base_ + number * each_; }
  int64_t each() const { return each_; }

 private:
  std::byte* base_;
  int64_t each_;
  int parts_;
};

/// The windows of a group of ranks on one host, for tensors that are summed where they are.
class ShmWindows {
 public:
  /// Where the same tensor of each rank lies.
  struct Place {
    std::shared_ptr<ShmWindow> window;
    int64_t offset = 0;  ///< bytes into each rank's part
    int64_t number = 0;  ///< tells it from other places, alike on all ranks; never 0
  };

  /// This rank's part of a new window, as a tensor of zeros that keeps it; plain memory on all ranks where
  /// the system has no more to share. Collective.
  at::Tensor open(Group& group, int64_t count, at::ScalarType type);
  /// One part for all ranks together, as a tensor of zeros that keeps it; undefined on all ranks where the
  /// system has no more to share. Collective.
  static at::Tensor open_common(Group& group, int64_t count, at::ScalarType type);
  /// Nothing where it does not lie in this rank's part of a window.
  std::optional<Place> find(const at::Tensor& tensor, int rank) const;

 private:
  std::vector<std::weak_ptr<ShmWindow>> windows_;  ///< in the order they were opened
};

}  // namespace syncopate::comm
