#pragma once

#include <ATen/ATen.h>

namespace syncopate::test {

/// Whether a row of a product is rounded by how many rows there are: OpenBLAS's kernels for AVX2 do that,
/// those for AVX-512 do not. Where they do, another batch is another result in the last bits.
inline bool products_round_by_rows() {
  const at::Tensor a = at::arange(16 * 32, at::kFloat).view({16, 32}).sin();
  const at::Tensor b = at::arange(32 * 64, at::kFloat).view({32, 64}).cos();
  const at::Tensor all = a.mm(b);
  for (int64_t rows = 2; rows < a.size(0); ++rows) {
    if (!at::equal(a.narrow(0, 0, rows).mm(b), all.narrow(0, 0, rows))) return true;
  }
  return false;
}

}  // namespace syncopate::test
