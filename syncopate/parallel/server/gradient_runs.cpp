#include "syncopate/parallel/server/gradient_runs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "syncopate/base/error.h"

namespace syncopate::parallel {
namespace {

void append(std::vector<Slice>& runs, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (!runs.empty() && runs.back().end == begin) {
    runs.back().end = end;
  } else {
    runs.push_back({begin, end});
  }
}

struct TableRows {
  int64_t width = 1;
  std::vector<int64_t> rows;  ///< ascending, each once
};

std::map<const tensor::FlatParams::Entry*, TableRows> rows_by_entry(const Replica& replica,
                                                                    std::span<const tensor::RowUse> rows) {
  std::map<const tensor::FlatParams::Entry*, TableRows> tables;
  for (const tensor::RowUse& use : rows) {
    TableRows& table = tables[replica.params.find(use.table)];
    table.width = use.table.size(1);
    const at::Tensor numbers = use.rows.reshape({-1}).to(at::kCPU).contiguous();
    const int64_t* const first = numbers.data_ptr<int64_t>();
    table.rows.insert(table.rows.end(), first, first + numbers.numel());
  }
  for (auto& [entry, table] : tables) {
    std::sort(table.rows.begin(), table.rows.end());
    table.rows.erase(std::unique(table.rows.begin(), table.rows.end()), table.rows.end());
  }
  return tables;
}

}  // namespace

std::vector<Slice> gradient_runs(const Replica& replica, std::span<const tensor::RowUse> rows) {
  const auto tables = rows_by_entry(replica, rows);
  std::vector<Slice> runs;
  int64_t done = 0;
  for (const auto& entry : replica.params.entries()) {
    const auto found = tables.find(&entry);
    if (found == tables.end()) continue;
    append(runs, done, entry.offset);
    const int64_t width = found->second.width;
    for (const int64_t row : found->second.rows)
      append(runs, entry.offset + row * width, entry.offset + (row + 1) * width);
    done = entry.offset + entry.size;
  }
  append(runs, done, replica.params.size());
  return runs;
}

std::vector<Slice> runs_within(const std::vector<Slice>& runs, const Slice& shard) {
  std::vector<Slice> within;
  for (const Slice& run : runs) {
    append(within, std::max(run.begin, shard.begin) - shard.begin,
           std::min(run.end, shard.end) - shard.begin);
  }
  return within;
}

int64_t elements_of(const std::vector<Slice>& runs) {
  int64_t elements = 0;
  for (const Slice& run : runs) elements += run.size();
  return elements;
}

at::Tensor pack(const at::Tensor& flat, const std::vector<Slice>& runs) {
  const at::Tensor packed = at::empty({elements_of(runs)}, flat.options());
  const auto size = flat.element_size();
  auto* to = static_cast<char*>(packed.data_ptr());
  for (const Slice& run : runs) {
    const auto bytes = static_cast<size_t>(run.size() * size);
    std::memcpy(to, static_cast<const char*>(flat.data_ptr()) + run.begin * size, bytes);
    to += bytes;
  }
  return packed;
}

void unpack(const at::Tensor& packed, const std::vector<Slice>& runs, const at::Tensor& flat) {
  check(packed.numel() == elements_of(runs), "packed elements fill their runs");
  flat.zero_();
  const auto size = flat.element_size();
  const auto* from = static_cast<const char*>(packed.data_ptr());
  for (const Slice& run : runs) {
    const auto bytes = static_cast<size_t>(run.size() * size);
    std::memcpy(static_cast<char*>(flat.data_ptr()) + run.begin * size, from, bytes);
    from += bytes;
  }
}

at::Tensor to_tensor(const std::vector<Slice>& runs) {
  const at::Tensor tensor = at::empty({static_cast<int64_t>(runs.size()), 2}, at::kLong);
  int64_t* to = tensor.data_ptr<int64_t>();
  for (const Slice& run : runs) {
    *to++ = run.begin;
    *to++ = run.end;
  }
  return tensor;
}

std::vector<Slice> runs_from(const at::Tensor& tensor) {
  std::vector<Slice> runs;
  const int64_t* const numbers = tensor.data_ptr<int64_t>();
  for (int64_t i = 0; i < tensor.size(0); ++i) runs.push_back({numbers[2 * i], numbers[2 * i + 1]});
  return runs;
}

}  // namespace syncopate::parallel
