#include "syncopate/parallel/strategies/row_exchange.h"

#include <ATen/ATen.h>

namespace syncopate::parallel {

RowExchange::RowExchange(comm::Group& group, const tensor::FlatParams::Entry& entry, int64_t rows,
                         int64_t width, bool in_place)
    : group_(group), entry_(&entry), rows_(rows), width_(width) {
  constexpr int64_t kShare = 8;  // of a table: a step seldom reads more, and the memory is there for good
  if (in_place && group.size() > 1 && entry.parameter.is_cpu() && rows >= kShare)
    room_ = group.room(rows / kShare * width, entry.parameter.scalar_type());
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

void RowExchange::start(Averager& averager, const tensor::FlatParams& params) {
  announced_.wait();
  table_ = params.grad_of(*entry_).view({rows_, width_});
  union_ = in_use_.nonzero().squeeze(1);
  // Past half of the table, packing costs more than it saves. Every rank sees the same union, so all agree.
  if (2 * union_.numel() > rows_) {
    union_ = at::Tensor();
    packed_ = at::Tensor();
    summed_ = averager.start({params.grad_of(*entry_), entry_->offset});
    return;
  }
  here_ = union_.to(table_.device());
  if (room_.defined() && here_.numel() * width_ <= room_.numel()) {
    packed_ = room_.narrow(0, 0, here_.numel() * width_).view({here_.numel(), width_});
    at::index_select_out(packed_, table_, 0, here_);
  } else {
    packed_ = table_.index_select(0, here_);
  }
  summed_ = averager.start({packed_, entry_->offset, union_});
}

at::Tensor RowExchange::finish() {
  summed_.wait();
  if (union_.defined()) table_.index_copy_(0, here_, packed_);
  return union_;
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
