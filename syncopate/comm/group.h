#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <vector>

#include "syncopate/comm/pending.h"

namespace syncopate::comm {

enum class Op { kSum, kMax, kMin };

inline constexpr int kAnyRank = -1;

/// A set of ranks that communicate. Every rank must make the same calls in the same order. Calls are made by
/// one thread at a time (an autograd hook may start an operation while the training thread sits in backward).
/// Each operation ends within the group's timeout or throws CommError; after a CommError the Group is dead.
/// Tensors are contiguous. Destroying a Group never communicates (but over NCCL, where all ranks leave).
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Pending all_reduce(at::Tensor tensor, Op op) = 0;    ///< in place
  virtual Pending broadcast(at::Tensor tensor, int root) = 0;  ///< in place
  /// `into` holds size() tensors at the root and is empty elsewhere.
  virtual Pending gather(std::vector<at::Tensor> into, at::Tensor mine, int root) = 0;
  /// `from` holds size() tensors at the root and is empty elsewhere.
  virtual Pending scatter(at::Tensor into, std::vector<at::Tensor> from, int root) = 0;
  virtual Pending all_gather(std::vector<at::Tensor> into, at::Tensor mine) = 0;
  virtual Pending send(at::Tensor tensor, int to, int tag) = 0;
  virtual Pending receive(at::Tensor into, int from, int tag) = 0;  ///< `from` may be kAnyRank
  virtual void barrier() = 0;
  /// A group of the ranks that gave the same color, ordered by key, then rank.
  virtual std::unique_ptr<Group> split(int color, int key) = 0;
  /// Memory for `count` elements, zero at first, where all_reduce works best: where ranks share memory, each
  /// finds the others' tensors in place and nothing is copied. Lives as long as the tensor. Collective; all
  /// ranks ask for the same. In an all_reduce either all ranks give the same part of one room, or none gives
  /// any.
  virtual at::Tensor room(int64_t count, at::ScalarType type);
  /// Memory for `count` elements, zero at first, that all ranks see as one: what one writes, the others read
  /// after a barrier. Undefined on all ranks where they do not share memory. Lives as long as the tensor.
  /// Collective; all ranks ask for the same.
  virtual at::Tensor common(int64_t count, at::ScalarType type);
  /// The sum over ranks of `mine`, a part of a `room`, into `total`, as many elements of a `common` memory:
  /// it is written once, where all_reduce writes it for every rank. `mine` stays as it is.
  virtual Pending sum_into(at::Tensor total, at::Tensor mine);
  /// The same of some rows of tables of fp32: `numbers` (int64, alike on all ranks) says which, and `in_use`
  /// (a byte for each row, in a `room`) where `mine` may differ from zero, so that nobody reads the rest.
  /// Other rows of `total` stay as they are.
  virtual Pending sum_rows_into(at::Tensor total, at::Tensor mine, at::Tensor in_use, at::Tensor numbers);
  /// Sets how long this rank waits in later operations; groups split from this one start with the same value.
  /// A rank that serves requests may wait as long as the others live.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;
};

}  // namespace syncopate::comm
