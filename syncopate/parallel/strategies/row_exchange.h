#pragma once

#include <vector>

#include "syncopate/parallel/averager.h"
#include "syncopate/parallel/replica.h"

namespace syncopate::parallel {

/// Sums an embedding table's gradient over ranks by exchanging only the rows that some rank's batch read. The
/// result is bit for bit that of exchanging the table whole.
class RowExchange {
 public:
  /// `entry` is one of `params`, which outlive this. `in_place`: the group sums the rows itself, quicker in
  /// its own room. Collective then.
  RowExchange(comm::Group& group, const tensor::FlatParams& params, const tensor::FlatParams::Entry& entry,
              int64_t rows, int64_t width, bool in_place);

  const tensor::FlatParams::Entry& entry() const { return *entry_; }

  /// Starts telling which rows this rank's step reads (none: `mine` undefined); may run while the backward
  /// pass does.
  void announce(const at::Tensor& mine);
  /// The gradient is in place: starts the sum of the rows in use.
  void start(Averager& averager);
  /// Waits and puts the sums in place; returns the rows that may differ from zero (undefined: any row).
  at::Tensor finish();

 private:
  void start_in_common(Averager& averager);

  comm::Group& group_;
  const tensor::FlatParams& params_;
  const tensor::FlatParams::Entry* entry_;
  int64_t rows_, width_;
  at::Tensor room_;         ///< for packed rows, unless there are too many; undefined: each step has its own
  at::Tensor mine_in_use_;  ///< one byte per row, which other ranks see, where ranks keep the sum together
  at::Tensor in_use_;       ///< the same; after the announcement alike on every rank
  comm::Pending announced_, summed_;
  at::Tensor table_, packed_;
  at::Tensor union_, here_;  ///< the rows in use, on the host and where the table is
  at::Tensor filled_;        ///< of the common sum, the rows that may differ from zero; undefined: all
};

/// The rows of a table that this rank's micro-batches of the step read, repeats allowed; undefined: none.
at::Tensor rows_read(const Replica& replica, const StepContext& context,
                     const tensor::FlatParams::Entry& entry);

}  // namespace syncopate::parallel
