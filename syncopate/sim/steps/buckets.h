#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/sim/steps/pieces.h"
#include "syncopate/sim/steps/workers.h"

namespace syncopate::sim {

/// An embedding's table that is exchanged by rows.
struct Table {
  int64_t rows = 0, columns = 0;  ///< 0: there is none
  double rows_read = 0;           ///< by all workers together
};

/// Tensors that are averaged together as soon as the last of their gradients is there, or one table.
struct Bucket {
  Piece piece{};
  double ready = 0;  ///< share of the backward pass
  Table table{};
};

/// The buckets of DDP, in the order in which they are ready.
std::vector<Bucket> buckets_of(const StepsOf& what);
Table table_of(const ParameterProfile& parameter, const StepsOf& what);

/// Starts to say which rows of a table are in use, before they are sent; the operation to wait for.
int announce(Workers& workers, const Table& table);
/// The rows that are read, taken out of a bucket's table; or all of it where those are most.
Piece take_rows(Workers& workers, const Bucket& bucket, const LocalCosts& costs, Account account);

}  // namespace syncopate::sim
