#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/comm/metering/metered.h"
#include "syncopate/comm/shm/region.h"
#include "syncopate/comm/shm/windows.h"

namespace syncopate::comm {

/// Collective operations through memory that all ranks share. Sums go in rank order, whatever the size of the
/// pieces: each rank sums a slice of every piece. One call at a time, in the same order on all ranks; ranks
/// that call different things get a CommError.
class ShmCollectives {
 public:
  /// Waits until `ready` is true, which looks at the desk of `rank` alone. Throws when the group is dead.
  using Await = std::function<void(int rank, const std::function<bool()>& ready)>;

  explicit ShmCollectives(std::shared_ptr<ShmRegion> region) : region_(std::move(region)) {}
  void all_reduce(const at::Tensor& tensor, Op op, const Await& await);
  /// All-reduce of tensors that lie in windows. Each rank sums one slice of everybody's tensors and writes it
  /// into all of them, or only into `total` where that is given: memory that all ranks share.
  void all_reduce_in_place(const at::Tensor& tensor, const ShmWindows::Place& place, Op op,
                           const at::Tensor& total, const Await& await);
  /// The sum of tensors that may lie anywhere, into `total`; the tensors stay as they are.
  void sum_into(const at::Tensor& total, const at::Tensor& tensor, const Await& await);
  /// Of tables and the bytes that say which rows are in use, which lie in windows: each rank sums a share of
  /// `numbers`.
  void sum_rows_in_place(const at::Tensor& total, const ShmWindows::Place& table,
                         const ShmWindows::Place& in_use, const at::Tensor& numbers, const Await& await);
  /// The same of a table that lies anywhere.
  void sum_rows(const at::Tensor& total, const at::Tensor& mine, const at::Tensor& numbers,
                const Await& await);
  /// Whether all_reduce_in_place is the quicker one for this tensor.
  static bool pays_in_place(const at::Tensor& tensor);
  void broadcast(const at::Tensor& tensor, int root, const Await& await);
  void gather(const std::vector<at::Tensor>& into, const at::Tensor& mine, int root, const Await& await);
  void scatter(const at::Tensor& into, const std::vector<at::Tensor>& from, int root, const Await& await);
  void all_gather(const std::vector<at::Tensor>& into, const at::Tensor& mine, const Await& await);
  void barrier(const Await& await);

 private:
  /// What all ranks must have in common.
  struct Deed {
    Kind call = Kind::kBarrier;
    int detail = 0;  ///< root or reduction
    int64_t bytes = 0;
    at::ScalarType type = at::kByte;
    int64_t place = 0;  ///< in a window
  };
  using Step = std::function<void(int64_t piece)>;
  static int64_t in_a_number(const Deed& deed);

  /// Until that number on every rank's desk is at least `least`.
  void await_all(std::atomic<int64_t> ShmRegion::Desk::*number, int64_t least, const Await& await) const;
  void await_one(int rank, std::atomic<int64_t> ShmRegion::Desk::*number, int64_t least,
                 const Await& await) const;
  /// The next piece, once its buffers are free; `fill` puts this rank's part there.
  int64_t publish(const Deed& deed, const Await& await, const Step& fill);
  void await_published(int64_t piece, const Deed& deed, const Await& await);
  void await_published(int64_t piece, int rank, const Deed& deed, const Await& await);
  void finish(int64_t piece);
  /// Every rank has done its slice of the piece.
  void await_reduced(int64_t piece, const Await& await);
  void reduce_large(const at::Tensor& tensor, Op op, const Await& await);
  void reduce_small(const at::Tensor& tensor, Op op, const Await& await);

  std::shared_ptr<ShmRegion> region_;
  int64_t next_ = 0;  ///< piece
};

}  // namespace syncopate::comm
