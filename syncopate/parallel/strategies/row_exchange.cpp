#include "syncopate/parallel/strategies/row_exchange.h"

#include <ATen/ATen.h>

#include <utility>

#include "syncopate/base/share.h"

namespace syncopate::parallel {

RowExchange::RowExchange(comm::Group& group, const tensor::FlatParams& params,
                         const tensor::FlatParams::Entry& entry, int64_t rows, int64_t width, bool in_place)
    : group_(group), params_(params), entry_(&entry), rows_(rows), width_(width) {
  constexpr int64_t kShare = 8;  // of a table: a step seldom reads more, and the memory is there for good
  if (!in_place || group.size() == 1 || !entry.parameter.is_cpu()) return;
  if (params.sums.defined()) {
    mine_in_use_ = group.room(rows, at::kByte);
  } else if (rows >= kShare) {
    room_ = group.room(rows / kShare * width, entry.parameter.scalar_type());
  }
}

void RowExchange::announce(const at::Tensor& mine) {
  in_use_ = at::zeros({rows_}, at::kByte);
  if (mine.defined()) {
    uint8_t* const flags = in_use_.data_ptr<uint8_t>();
    const at::Tensor flat = mine.reshape({-1}).to(at::kCPU).contiguous();
    const int64_t* const numbers = flat.data_ptr<int64_t>();
    for (int64_t i = 0; i < flat.numel(); ++i) flags[numbers[i]] = 1;
  }
  if (mine_in_use_.defined()) mine_in_use_.copy_(in_use_);
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
  if (mine_in_use_.defined()) return start_in_common(averager);
  here_ = union_.to(table_.device());
  const int64_t count = here_.numel() * width_;
  if (room_.defined() && count <= room_.numel()) {
    packed_ = room_.narrow(0, 0, count).view({here_.numel(), width_});
    at::index_select_out(packed_, table_, 0, here_);
  } else {
    packed_ = table_.index_select(0, here_);
  }
  summed_ = averager.start({packed_, entry_->offset, union_});
}

void RowExchange::start_in_common(Averager& averager) {
  const at::Tensor sums = params_.sums.narrow(0, entry_->offset, entry_->size).view({rows_, width_});
  // What the step before has left there is cleared by all ranks together, each a share.
  const auto mine = [&](int64_t count) { return share_of(count, group_.rank(), group_.size()); };
  if (filled_.defined()) {
    const Share share = mine(filled_.numel());
    const at::Tensor old = filled_.narrow(0, share.begin, share.size());
    sums.index_fill_(0, old.masked_select(in_use_.index_select(0, old).eq(0)), 0);
  } else {
    const Share share = mine(rows_);
    sums.narrow(0, share.begin, share.size())
        .masked_fill_(in_use_.narrow(0, share.begin, share.size()).eq(0).unsqueeze(1), 0);
  }
  summed_ = averager.start({table_, entry_->offset, union_, sums, mine_in_use_});
}

at::Tensor RowExchange::finish() {
  summed_.wait();
  if (mine_in_use_.defined()) {
    filled_ = union_;
  } else if (union_.defined()) {
    table_.index_copy_(0, here_, packed_);
  }
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
