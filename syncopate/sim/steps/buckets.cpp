#include "syncopate/sim/steps/buckets.h"

#include <algorithm>
#include <cmath>

namespace syncopate::sim {

std::vector<Bucket> buckets_of(const StepsOf& what) {
  const auto& strategy = what.spec.strategy;
  std::vector<Bucket> found;
  const auto total = static_cast<double>(what.profile.elements());
  double room = strategy.first_bucket_mib, before = 0;
  bool open = false;
  for (const ParameterProfile& parameter : what.profile.parameters) {
    const bool by_rows = strategy.sparse_rows && is_table(parameter);
    if (!open || by_rows) found.emplace_back();
    Bucket& bucket = found.back();
    append(bucket.piece, parameter);
    before += static_cast<double>(parameter.elements());
    const double ready = std::isfinite(parameter.ready) ? parameter.ready : before / total;
    bucket.ready = std::max({bucket.ready, ready, found.size() > 1 ? found[found.size() - 2].ready : 0});
    open = !by_rows && bucket.piece.fp32_bytes() < room * 1024 * 1024;
    if (by_rows) bucket.table = table_of(parameter, what);
    if (!open) room = strategy.bucket_mib;
  }
  return found;
}

Table table_of(const ParameterProfile& parameter, const StepsOf& what) {
  return {.rows = parameter.shape[0],
          .columns = parameter.shape[1],
          .rows_read = rows_read(parameter, what.profile, what.global_batch)};
}

int announce(Workers& workers, const Table& table) {
  const int said = workers.all_reduce(static_cast<double>(table.rows), 1);
  workers.start(said);
  return said;
}

Piece take_rows(Workers& workers, const Bucket& bucket, const LocalCosts& costs, Account account) {
  const Table& table = bucket.table;
  if (2 * table.rows_read > static_cast<double>(table.rows)) return bucket.piece;
  const int64_t rows = std::max<int64_t>(1, std::llround(table.rows_read));
  const Piece piece{.elements = rows * table.columns, .matrices = {{rows, table.columns}}};
  workers.spend(account, 2 * piece.fp32_bytes() / bytes_per_s(costs.copy_gbyte));
  return piece;
}

}  // namespace syncopate::sim
