#include "syncopate/comm/mpi/collectives.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "syncopate/base/share.h"
#include "syncopate/comm/operations/reduce_in_order.h"

namespace syncopate::comm {
namespace {

void copy_own(const at::Tensor& into, const at::Tensor& from) {
  if (into.data_ptr() != from.data_ptr()) std::memcpy(into.data_ptr(), from.data_ptr(), from.nbytes());
}

/// Above those of letters.
int own_tag() { return MpiProcess::instance().highest_tag(); }

}  // namespace

void MpiCollectives::await(MpiCalls& calls) const {
  state_->until([&] { return calls.done(); }, [&] { return calls.awaited(); }, operation_, wait_);
}

/// Pieces bound the memory that others' numbers take here. Small ones go to everybody as a whole: one trip
/// instead of two.
void MpiCollectives::all_reduce(const at::Tensor& mine, Op op) const {
  constexpr int64_t kTogether = 8 << 10, kPiece = 8 << 20;
  const at::Tensor flat = mine.view({mine.numel()});
  if (flat.numel() * flat.element_size() <= kTogether) return reduce_together(flat, op);
  const int64_t most = kPiece / flat.element_size();
  for (int64_t at = 0; at < flat.numel(); at += most)
    reduce_in_slices(flat.narrow(0, at, std::min(most, flat.numel() - at)), op);
}

void MpiCollectives::reduce_together(const at::Tensor& piece, Op op) const {
  const at::Tensor theirs = at::empty({size_, piece.numel()}, piece.options());
  MpiCalls calls(state_->link);
  calls.keep(piece);
  calls.keep(theirs);
  std::vector<const void*> parts;
  for (int rank = 0; rank < size_; ++rank) {
    const at::Tensor row = is_other(rank) ? theirs[rank] : piece;
    parts.push_back(row.data_ptr());
    if (!is_other(rank)) continue;
    calls.receive(row.data_ptr(), row.nbytes(), rank, own_tag());
    calls.send(piece.data_ptr(), piece.nbytes(), rank, own_tag());
  }
  await(calls);
  reduce_in_order(parts, {piece.data_ptr()}, piece.numel(), piece.scalar_type(), op);
}

/// Each rank reduces a slice, in the order of the ranks, and hands it to the others.
void MpiCollectives::reduce_in_slices(const at::Tensor& piece, Op op) const {
  const auto slice = [&](int rank) {
    const Share share = share_of(piece.numel(), rank, size_);
    return piece.narrow(0, share.begin, share.size());
  };
  const at::Tensor own = slice(rank_);
  const at::Tensor theirs = at::empty({size_, own.numel()}, piece.options());
  std::vector<const void*> parts;
  {
    MpiCalls calls(state_->link);
    calls.keep(piece);
    calls.keep(theirs);
    for (int rank = 0; rank < size_; ++rank) {
      parts.push_back(is_other(rank) ? theirs[rank].data_ptr() : own.data_ptr());
      if (!is_other(rank)) continue;
      calls.receive(theirs[rank].data_ptr(), own.nbytes(), rank, own_tag());
      calls.send(slice(rank).data_ptr(), slice(rank).nbytes(), rank, own_tag());
    }
    await(calls);
  }
  reduce_in_order(parts, {own.data_ptr()}, own.numel(), own.scalar_type(), op);
  MpiCalls calls(state_->link);
  calls.keep(piece);
  for (int rank = 0; rank < size_; ++rank) {
    if (!is_other(rank)) continue;
    calls.receive(slice(rank).data_ptr(), slice(rank).nbytes(), rank, own_tag());
    calls.send(own.data_ptr(), own.nbytes(), rank, own_tag());
  }
  await(calls);
}

void MpiCollectives::broadcast(const at::Tensor& tensor, int root) const {
  MpiCalls calls(state_->link);
  calls.keep(tensor);
  calls.broadcast(tensor.data_ptr(), tensor.nbytes(), root);
  await(calls);
}

void MpiCollectives::gather(const std::vector<at::Tensor>& into, const at::Tensor& mine, int root) const {
  MpiCalls calls(state_->link);
  calls.keep(mine);
  if (is_other(root)) {
    calls.send(mine.data_ptr(), mine.nbytes(), root, own_tag());
  } else {
    for (int rank = 0; rank < size_; ++rank) {
      const at::Tensor& theirs = into[static_cast<size_t>(rank)];
      calls.keep(theirs);
      if (is_other(rank)) calls.receive(theirs.data_ptr(), theirs.nbytes(), rank, own_tag());
    }
    copy_own(into[static_cast<size_t>(rank_)], mine);
  }
  await(calls);
}

void MpiCollectives::scatter(const at::Tensor& into, const std::vector<at::Tensor>& from, int root) const {
  MpiCalls calls(state_->link);
  calls.keep(into);
  if (is_other(root)) {
    calls.receive(into.data_ptr(), into.nbytes(), root, own_tag());
  } else {
    for (int rank = 0; rank < size_; ++rank) {
      const at::Tensor& theirs = from[static_cast<size_t>(rank)];
      calls.keep(theirs);
      if (is_other(rank)) calls.send(theirs.data_ptr(), theirs.nbytes(), rank, own_tag());
    }
    copy_own(into, from[static_cast<size_t>(rank_)]);
  }
  await(calls);
}

void MpiCollectives::all_gather(const std::vector<at::Tensor>& into, const at::Tensor& mine) const {
  MpiCalls calls(state_->link);
  calls.keep(mine);
  for (int rank = 0; rank < size_; ++rank) {
    const at::Tensor& theirs = into[static_cast<size_t>(rank)];
    calls.keep(theirs);
    if (!is_other(rank)) continue;
    calls.receive(theirs.data_ptr(), theirs.nbytes(), rank, own_tag());
    calls.send(mine.data_ptr(), mine.nbytes(), rank, own_tag());
  }
  copy_own(into[static_cast<size_t>(rank_)], mine);
  await(calls);
}

void MpiCollectives::barrier() const {
  MpiCalls calls(state_->link);
  calls.barrier();
  await(calls);
}

}  // namespace syncopate::comm
