#include "syncopate/comm/shm/collectives.h"

#include <algorithm>
#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/base/share.h"
#include "syncopate/comm/operations/reduce_in_order.h"

namespace syncopate::comm {
namespace {

constexpr int64_t kLine = 64;
/// Up to here every rank sums all of it: one meeting instead of two.
constexpr int64_t kSmall = 8 << 10;

// Behind an all_reduce's reduction: the sum comes into common memory; of rows.
constexpr int kInto = 1 << 8, kRows = 1 << 9;

std::byte* bytes_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

int64_t size_of(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

/// What one of `ranks` sums of `bytes`, in whole lines of the cache.
Share slice_of(int64_t bytes, int rank, int ranks) { return share_of(bytes, rank, ranks, kLine); }

/// Calls `each(first byte, bytes)` for pieces of at most `most` bytes.
template <typename Each>
void in_pieces(int64_t bytes, int64_t most, const Each& each) {
  for (int64_t from = 0; from < bytes; from += most) each(from, std::min(most, bytes - from));
}

}  // namespace

int64_t ShmCollectives::in_a_number(const Deed& deed) {
  constexpr int64_t kTypes = 128, kDetails = 1 << 12;
  const int64_t what = (deed.bytes * kDetails + deed.detail) * kTypes + static_cast<int64_t>(deed.type);
  return what * kKinds + static_cast<int64_t>(deed.call);
}

using Desk = ShmRegion::Desk;

void ShmCollectives::await_one(int rank, std::atomic<int64_t> Desk::*number, int64_t least,
                               const Await& await) const {
  const std::atomic<int64_t>& there = region_->desk(rank).*number;
  await(rank, [&] { return there.load() >= least; });
}

/// One after the other, so that a rank that arrives wakes those alone who wait for it; each begins behind
/// itself, so that they do not all wait for the same one.
void ShmCollectives::await_all(std::atomic<int64_t> Desk::*number, int64_t least, const Await& await) const {
  for (int step = 1; step < region_->size(); ++step)
    await_one((region_->rank() + step) % region_->size(), number, least, await);
}

int64_t ShmCollectives::publish(const Deed& deed, const Await& await, const Step& fill) {
  const int64_t piece = next_++;
  await_all(&Desk::done, piece - 1, await);
  fill(piece);
  Desk& desk = region_->mine();
  desk.deed[static_cast<size_t>(piece % 2)].store(in_a_number(deed));
  desk.place[static_cast<size_t>(piece % 2)].store(deed.place);
  desk.published.store(piece + 1);
  desk.bell.ring();
  return piece;
}

void ShmCollectives::await_published(int64_t piece, int rank, const Deed& deed, const Await& await) {
  const Desk& desk = region_->desk(rank);
  await_one(rank, &Desk::published, piece + 1, await);
  const int64_t theirs = desk.deed[static_cast<size_t>(piece % 2)].load();
  if (theirs == in_a_number(deed) && desk.place[static_cast<size_t>(piece % 2)].load() == deed.place) return;
  throw CommError(
      "rank {} of a group called {} where rank {} called {}, or one with another tensor or root: all ranks "
      "must make the same calls in the same order",
      region_->rank(), name_of(deed.call), rank, name_of(static_cast<Kind>(theirs % kKinds)));
}

void ShmCollectives::await_published(int64_t piece, const Deed& deed, const Await& await) {
  await_all(&Desk::published, piece + 1, await);
  for (int r = 0; r < region_->size(); ++r) await_published(piece, r, deed, await);
}

void ShmCollectives::finish(int64_t piece) {
  region_->mine().done.store(piece + 1);
  region_->mine().bell.ring();
}

void ShmCollectives::all_reduce(const at::Tensor& tensor, Op op, const Await& await) {
  size_of(tensor) <= kSmall ? reduce_small(tensor, op, await) : reduce_large(tensor, op, await);
}

void ShmCollectives::reduce_small(const at::Tensor& tensor, Op op, const Await& await) {
  const Deed deed{Kind::kAllReduce, static_cast<int>(op), size_of(tensor), tensor.scalar_type()};
  const int64_t piece = publish(deed, await, [&](int64_t k) {
    copy_bytes(region_->published(region_->rank(), k), bytes_of(tensor), deed.bytes);
  });
  await_published(piece, deed, await);
  std::vector<const void*> parts;
  for (int r = 0; r < region_->size(); ++r) parts.push_back(region_->published(r, piece));
  reduce_in_order(parts, {tensor.data_ptr()}, tensor.numel(), tensor.scalar_type(), op);
  finish(piece);
}

void ShmCollectives::reduce_large(const at::Tensor& tensor, Op op, const Await& await) {
  const int rank = region_->rank(), ranks = region_->size();
  const auto element = static_cast<int64_t>(tensor.element_size());
  const Deed deed{Kind::kAllReduce, static_cast<int>(op), size_of(tensor), tensor.scalar_type()};
  const auto slice = [&](int64_t bytes, int r) { return slice_of(bytes, r, ranks); };
  const auto put = [&](int64_t from, int64_t bytes) {
    return publish(deed, await, [&](int64_t piece) {
      for (int r = 0; r < ranks; ++r) {  // its own slice it takes from the tensor itself
        const Share part = slice(bytes, r);
        if (r != rank)
          copy_bytes(region_->published(rank, piece) + part.begin, bytes_of(tensor) + from + part.begin,
                     part.size());
      }
    });
  };
  const int64_t all = deed.bytes;
  int64_t piece = put(0, std::min(all, ShmRegion::kPiece));
  std::vector<const void*> parts(static_cast<size_t>(ranks));
  in_pieces(all, ShmRegion::kPiece, [&](int64_t from, int64_t bytes) {
    const int64_t behind = from + bytes, now = piece;
    // Others find the next piece while this rank sums.
    if (behind < all) piece = put(behind, std::min(ShmRegion::kPiece, all - behind));
    await_published(now, deed, await);
    const Share own = slice(bytes, rank);
    std::byte* const here = bytes_of(tensor) + from;
    for (int r = 0; r < ranks; ++r)
      parts[static_cast<size_t>(r)] = (r == rank ? here : region_->published(r, now)) + own.begin;
    reduce_in_order(parts, {here + own.begin, region_->total(now) + own.begin}, own.size() / element,
                    tensor.scalar_type(), op);
    region_->mine().reduced.store(now + 1);
    region_->mine().bell.ring();
    for (int step = 1; step < ranks; ++step) {
      const int r = (rank + step) % ranks;
      await_one(r, &Desk::reduced, now + 1, await);
      const Share part = slice(bytes, r);
      copy_bytes(here + part.begin, region_->total(now) + part.begin, part.size());
    }
    finish(now);
  });
}

bool ShmCollectives::pays_in_place(const at::Tensor& tensor) { return size_of(tensor) > kSmall; }

void ShmCollectives::all_reduce_in_place(const at::Tensor& tensor, const ShmWindows::Place& place, Op op,
                                         const at::Tensor& total, const Await& await) {
  const int rank = region_->rank(), ranks = region_->size();
  const int detail = static_cast<int>(op) + (total.defined() ? kInto : 0);
  const Deed deed{Kind::kAllReduce, detail, size_of(tensor), tensor.scalar_type(), place.number};
  const int64_t piece = publish(deed, await, [](int64_t) {});
  await_published(piece, deed, await);
  const Share own = slice_of(deed.bytes, rank, ranks);
  const auto element = static_cast<int64_t>(tensor.element_size());
  std::vector<void*> all(static_cast<size_t>(ranks));
  in_pieces(own.size(), ShmRegion::kPiece, [&](int64_t from, int64_t bytes) {
    for (int r = 0; r < ranks; ++r)
      all[static_cast<size_t>(r)] = place.window->part(r) + place.offset + own.begin + from;
    const std::vector<const void*> parts(all.begin(), all.end());
    const std::vector<void*> outs =
        total.defined() ? std::vector<void*>{bytes_of(total) + own.begin + from} : all;
    reduce_in_order(parts, outs, bytes / element, tensor.scalar_type(), op);
  });
  await_reduced(piece, await);
}

void ShmCollectives::await_reduced(int64_t piece, const Await& await) {
  region_->mine().reduced.store(piece + 1);
  region_->mine().bell.ring();
  await_all(&Desk::reduced, piece + 1, await);
  finish(piece);
}

void ShmCollectives::sum_rows_in_place(const at::Tensor& total, const ShmWindows::Place& table,
                                       const ShmWindows::Place& in_use, const at::Tensor& numbers,
                                       const Await& await) {
  const int ranks = region_->size();
  const Share mine = share_of(numbers.numel(), region_->rank(), ranks);
  const Deed deed{Kind::kAllReduce, kRows, numbers.numel(), total.scalar_type(), table.number};
  const int64_t piece = publish(deed, await, [](int64_t) {});
  await_published(piece, deed, await);
  std::vector<const void*> tables, used;
  for (int r = 0; r < ranks; ++r) {
    tables.push_back(table.window->part(r) + table.offset);
    used.push_back(in_use.window->part(r) + in_use.offset);
  }
  sum_used_rows(tables, used, numbers, mine.begin, mine.end, total.size(1), total.data_ptr());
  await_reduced(piece, await);
}

void ShmCollectives::sum_rows(const at::Tensor& total, const at::Tensor& mine, const at::Tensor& numbers,
                              const Await& await) {
  const at::Tensor packed = mine.index_select(0, numbers);
  all_reduce(packed, Op::kSum, await);
  const Share own = share_of(numbers.numel(), region_->rank(), region_->size());
  at::Tensor(total).index_copy_(0, numbers.narrow(0, own.begin, own.size()),
                                packed.narrow(0, own.begin, own.size()));
  barrier(await);
}

void ShmCollectives::sum_into(const at::Tensor& total, const at::Tensor& tensor, const Await& await) {
  const at::Tensor sum = tensor.clone();
  all_reduce(sum, Op::kSum, await);
  const Share own = slice_of(size_of(sum), region_->rank(), region_->size());
  copy_bytes(bytes_of(total) + own.begin, bytes_of(sum) + own.begin, own.size());
  barrier(await);
}

void ShmCollectives::broadcast(const at::Tensor& tensor, int root, const Await& await) {
  const bool sends = region_->rank() == root;
  const Deed deed{Kind::kBroadcast, root, size_of(tensor), tensor.scalar_type()};
  in_pieces(deed.bytes, ShmRegion::kPiece, [&](int64_t from, int64_t bytes) {
    const int64_t piece = publish(deed, await, [&](int64_t k) {
      if (sends) copy_bytes(region_->published(root, k), bytes_of(tensor) + from, bytes);
    });
    if (!sends) {
      await_published(piece, root, deed, await);
      copy_bytes(bytes_of(tensor) + from, region_->published(root, piece), bytes);
    }
    finish(piece);
  });
}

void ShmCollectives::gather(const std::vector<at::Tensor>& into, const at::Tensor& mine, int root,
                            const Await& await) {
  const Deed deed{Kind::kGather, root, size_of(mine), mine.scalar_type()};
  in_pieces(deed.bytes, ShmRegion::kPiece, [&](int64_t from, int64_t bytes) {
    const int64_t piece = publish(deed, await, [&](int64_t k) {
      copy_bytes(region_->published(region_->rank(), k), bytes_of(mine) + from, bytes);
    });
    for (int r = 0; region_->rank() == root && r < region_->size(); ++r) {
      await_published(piece, r, deed, await);
      copy_bytes(bytes_of(into[static_cast<size_t>(r)]) + from, region_->published(r, piece), bytes);
    }
    finish(piece);
  });
}

void ShmCollectives::scatter(const at::Tensor& into, const std::vector<at::Tensor>& from, int root,
                             const Await& await) {
  const Deed deed{Kind::kScatter, root, size_of(into), into.scalar_type()};
  const int64_t most = ShmRegion::kPiece / region_->size() / kLine * kLine;
  in_pieces(deed.bytes, most, [&](int64_t begin, int64_t bytes) {
    const int64_t piece = publish(deed, await, [&](int64_t k) {
      for (size_t r = 0; region_->rank() == root && r < from.size(); ++r)
        copy_bytes(region_->published(root, k) + static_cast<int64_t>(r) * most, bytes_of(from[r]) + begin,
                   bytes);
    });
    await_published(piece, root, deed, await);
    copy_bytes(bytes_of(into) + begin, region_->published(root, piece) + region_->rank() * most, bytes);
    finish(piece);
  });
}

void ShmCollectives::all_gather(const std::vector<at::Tensor>& into, const at::Tensor& mine,
                                const Await& await) {
  const Deed deed{Kind::kAllGather, 0, size_of(mine), mine.scalar_type()};
  in_pieces(deed.bytes, ShmRegion::kPiece, [&](int64_t from, int64_t bytes) {
    const int64_t piece = publish(deed, await, [&](int64_t k) {
      copy_bytes(region_->published(region_->rank(), k), bytes_of(mine) + from, bytes);
    });
    for (int r = 0; r < region_->size(); ++r) {
      await_published(piece, r, deed, await);
      copy_bytes(bytes_of(into[static_cast<size_t>(r)]) + from, region_->published(r, piece), bytes);
    }
    finish(piece);
  });
}

void ShmCollectives::barrier(const Await& await) {
  const Deed deed{Kind::kBarrier};
  const int64_t piece = publish(deed, await, [](int64_t) {});
  await_published(piece, deed, await);
  finish(piece);
}

}  // namespace syncopate::comm
