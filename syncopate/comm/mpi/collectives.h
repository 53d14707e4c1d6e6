#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/comm/mpi/state.h"

namespace syncopate::comm {

/// The operations, in straight lines; they block. All ranks carry out the same ones in the same order.
class MpiCollectives {
 public:
  /// `operation`, for sentences; `wait` as MpiState::until takes it.
  MpiCollectives(std::shared_ptr<const MpiState> state, const char* operation, Wait* wait)
      : state_(std::move(state)),
        operation_(operation),
        wait_(wait),
        rank_(state_->rank),
        size_(state_->size) {}

  void all_reduce(const at::Tensor& mine, Op op) const;
  void broadcast(const at::Tensor& tensor, int root) const;
  void gather(const std::vector<at::Tensor>& into, const at::Tensor& mine, int root) const;
  void scatter(const at::Tensor& into, const std::vector<at::Tensor>& from, int root) const;
  void all_gather(const std::vector<at::Tensor>& into, const at::Tensor& mine) const;
  void barrier() const;

 private:
  void reduce_together(const at::Tensor& piece, Op op) const;
  void reduce_in_slices(const at::Tensor& piece, Op op) const;
  void await(MpiCalls& calls) const;
  bool is_other(int rank) const { return rank != rank_; }

  std::shared_ptr<const MpiState> state_;
  const char* operation_;
  Wait* wait_;
  int rank_, size_;
};

}  // namespace syncopate::comm
