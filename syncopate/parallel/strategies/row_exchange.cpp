#include "syncopate/parallel/strategies/row_exchange.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/parallel/shared_update.h"

namespace syncopate::parallel {

RowExchange::RowExchange(comm::Group& group, const tensor::FlatParams& params,
                         const tensor::FlatParams::Entry& entry, int64_t rows, int64_t width, bool in_place)
    : group_(group), params_(params), entry_(&entry), rows_(rows), width_(width) {
  constexpr int64_t kShare = 8;  // of a table: a step seldom reads more, and the memory is there for good
  if (!in_place || group.size() == 1 || !entry.parameter.is_cpu() || rows < kShare) return;
  const auto memory = [&](auto take) {
    return (group.*take)(rows / kShare * width, entry.parameter.scalar_type());
  };
  room_ = memory(&comm::Group::room);
  if (params.sums.defined()) totals_ = memory(&comm::Group::common);
}

void RowExchange::announce(const at::Tensor& mine) {
  in_use_ = at::zeros({rows_}, at::kByte);
  if (mine.defined()) {
    uint8_t* const flags = in_use_.data_ptr<uint8_t>();
    const at::Tensor flat = mine.reshape({-1}).to(at::kCPU).contiguous();
    const int64_t* const numbers = flat.data_ptr<int64_t>();
    for (int64_t i = 0; i < flat.numel(); ++i) flags[numbers[i]] = 1;
  }
  announced_ = group_.all_reduce(in_use_, comm::Op::kMax);
}

void RowExchange::start(Averager& averager) {
  announced_.wait();
  table_ = params_.grad_of(*entry_).view({rows_, width_});
  union_ = in_use_.nonzero().squeeze(1);
  // Past half of the table, packing costs more than it saves. Every rank sees the same union, so all agree.
  if (2 * union_.numel() > rows_) {
    union_ = at::Tensor();
    packed_ = at::Tensor();
    summed_ = averager.start(piece_of(params_, entry_->offset, entry_->size));
    return;
  }
  here_ = union_.to(table_.device());
  const int64_t count = here_.numel() * width_;
  const bool fits = room_.defined() && count <= room_.numel();
  const auto front = [&](const at::Tensor& of) {
    return of.narrow(0, 0, count).view({here_.numel(), width_});
  };
  if (fits) {
    packed_ = front(room_);
    at::index_select_out(packed_, table_, 0, here_);
  } else {
    packed_ = table_.index_select(0, here_);
  }
  Piece piece{packed_, entry_->offset, union_};
  if (fits && totals_.defined()) packed_ = piece.into = front(totals_);
  summed_ = averager.start(std::move(piece));
}

at::Tensor RowExchange::finish() {
  summed_.wait();
  if (params_.sums.defined()) {
    fill_my_part();
  } else if (union_.defined()) {
    table_.index_copy_(0, here_, packed_);
  }
  return union_;
}

void RowExchange::fill_my_part() {
  const Part mine = part_of(params_.size(), group_.rank(), group_.size());
  const int64_t begin = std::max<int64_t>(mine.begin - entry_->offset, 0);  // elements of the table
  const int64_t end = std::min(mine.end - entry_->offset, entry_->size);
  if (begin < end) {
    float* const table = params_.sums.data_ptr<float>() + entry_->offset;
    // Calls `each(from, to, where row i of `rows` begins, i)` for what lies in this part: rows are in order.
    const auto each_row = [&](const at::Tensor& rows, const auto& each) {
      const int64_t* const numbers = rows.data_ptr<int64_t>();
      const int64_t* const last = numbers + rows.numel();
      for (const int64_t* row = std::lower_bound(numbers, last, begin / width_);
           row != last && *row * width_ < end; ++row) {
        const int64_t first = *row * width_;
        each(std::max(first, begin), std::min(first + width_, end), first, row - numbers);
      }
    };
    if (union_.defined() && filled_.defined()) {  // what the step before has left there
      each_row(filled_, [&](int64_t from, int64_t to, int64_t, int64_t) {
        std::fill(table + from, table + to, 0.0F);
      });
    } else if (union_.defined()) {
      std::fill(table + begin, table + end, 0.0F);
    }
    if (union_.defined()) {  // else the table was summed whole and is there already
      const float* const packed = packed_.data_ptr<float>();
      each_row(union_, [&](int64_t from, int64_t to, int64_t first, int64_t i) {
        std::copy(packed + i * width_ + (from - first), packed + i * width_ + (to - first), table + from);
      });
    }
  }
  filled_ = union_;
}

at::Tensor rows_read(const Replica& replica, const StepContext& context,
                     const tensor::FlatParams::Entry& entry) {
  at::Tensor read;
  for (const auto& use : context.rows) {
    if (replica.params.find(use.table) != &entry) continue;
    const at::Tensor rows = use.rows.reshape({-1});
    read = read.defined() ? at::cat({read, rows}) : rows;
  }
  return read;
}

}  // namespace syncopate::parallel
