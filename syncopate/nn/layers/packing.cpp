#include "syncopate/nn/layers/packing.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::nn {
namespace {

at::Tensor numbers(const std::vector<int64_t>& values, int64_t count) {
  at::Tensor made = at::empty({count}, at::kLong);
  std::copy_n(values.begin(), count, made.data_ptr<int64_t>());
  return made;
}

}  // namespace

Packed packing_of(const tensor::Batch& batch) {
  const auto found = batch.fields.find("attention_mask");
  if (found == batch.fields.end()) return nullptr;
  const at::Tensor& mask_BL = found->second;
  if (!mask_BL.is_cpu() || mask_BL.scalar_type() != at::kLong || batch.real_tokens == mask_BL.numel())
    return nullptr;
  const at::Tensor rows_BL = mask_BL.contiguous();
  const int64_t B = rows_BL.size(0), L = rows_BL.size(1);
  auto made = std::make_shared<Packing>();
  made->length = L;
  made->starts = made->areas = {0};
  for (int64_t b = 0; b < B; ++b) {
    const int64_t* row = rows_BL.data_ptr<int64_t>() + b * L;
    const int64_t* end = std::find(row, row + L, int64_t{0});
    if (end == row || std::any_of(end, row + L, [](int64_t seen) { return seen != 0; })) return nullptr;
    const int64_t real = end - row;
    made->starts.push_back(made->starts.back() + real);
    made->areas.push_back(made->areas.back() + real * real);
  }
  const int64_t N = made->rows();
  if (N == B * L) return nullptr;
  made->firsts_B = numbers(made->starts, B);
  made->places_N = at::empty({N}, at::kLong);
  made->positions_N = at::empty({N}, at::kLong);
  int64_t *place = made->places_N.data_ptr<int64_t>(), *position = made->positions_N.data_ptr<int64_t>();
  for (int64_t b = 0; b < B; ++b) {
    const auto text = static_cast<size_t>(b);
    for (int64_t l = 0; l < made->starts[text + 1] - made->starts[text]; ++l) {
      *place++ = b * L + l;
      *position++ = l;
    }
  }
  return made;
}

at::Tensor pack(const at::Tensor& x_BLD, const Packing& packing) {
  return x_BLD.flatten(0, 1).index_select(0, packing.places_N).unsqueeze(0);
}

at::Tensor unpack(const at::Tensor& x_1ND, const Packing& packing) {
  const int64_t B = packing.examples(), L = packing.length, D = x_1ND.size(2);
  return at::zeros({B * L, D}, x_1ND.options()).index_copy(0, packing.places_N, x_1ND[0]).view({B, L, D});
}

at::Tensor packed_rows(const at::Tensor& places, const Packing& packing) {
  const at::Tensor rows = places.contiguous().clone();
  int64_t* row = rows.data_ptr<int64_t>();
  for (int64_t i = 0; i < rows.numel(); ++i) {
    const auto text = static_cast<size_t>(row[i] / packing.length);
    row[i] = packing.starts.at(text) + row[i] % packing.length;
    check(row[i] < packing.starts.at(text + 1), "a place that is asked for is a text's");
  }
  return rows;
}

NoiseRows rows_of(const tensor::Batch& batch, const Packing& packing) {
  check(batch.size() == packing.examples(), "a batch says which examples it holds");
  auto rows = std::make_shared<std::vector<uint64_t>>();
  rows->reserve(static_cast<size_t>(packing.rows()));
  for (size_t text = 0; text < batch.ids.size(); ++text) {
    const uint64_t first = mix(static_cast<uint64_t>(batch.ids[text]));
    const auto real = static_cast<uint64_t>(packing.starts[text + 1] - packing.starts[text]);
    for (uint64_t place = 0; place < real; ++place) rows->push_back(first + place);
  }
  return rows;
}

}  // namespace syncopate::nn
