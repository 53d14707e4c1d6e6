#include "syncopate/tensor/flat_params.h"

#include <ATen/ATen.h>

#include <utility>

#include "syncopate/base/error.h"

namespace syncopate::tensor {
namespace {

constexpr int64_t kAlignBytes = 64;

int64_t round_up(int64_t elements, int64_t element_size) {
  const int64_t unit = kAlignBytes / element_size;
  return (elements + unit - 1) / unit * unit;
}

}  // namespace

FlatParams::FlatParams(const std::vector<NamedTensor>& parameters, std::optional<c10::Device> device) {
  check(!parameters.empty(), "a model without parameters cannot be trained");
  const at::Tensor& front = parameters.front().tensor;
  const at::TensorOptions options =
      front.options().device(device.value_or(front.device())).requires_grad(false);
  int64_t total = 0;
  for (auto named = parameters.rbegin(); named != parameters.rend(); ++named) {
    const at::Tensor& parameter = named->tensor;
    check(parameter.dtype() == options.dtype(), "all parameters must be of one type");
    entries_.push_back({.name = named->name,
                        .parameter = parameter,
                        .offset = total,
                        .size = parameter.numel(),
                        .decay = parameter.dim() >= 2});
    total += round_up(parameter.numel(), parameter.element_size());
  }
  values = at::zeros({total}, options);
  grads = at::zeros({total}, options);
  for (Entry& entry : entries_) {
    const auto shape = entry.parameter.sizes().vec();
    at::Tensor view = value_of(entry).view(shape);
    view.copy_(entry.parameter.detach());
    entry.parameter.set_data(view);
    entry.parameter.mutable_grad() = grad_of(entry).view(shape);
  }
}

FlatParams::FlatParams(at::Tensor flat, std::vector<Entry> parts)
    : values(std::move(flat)), grads(at::zeros_like(values)), entries_(std::move(parts)) {}

void FlatParams::move_values(const at::Tensor& storage) {
  check(storage.sizes() == values.sizes() && storage.dtype() == values.dtype() && storage.is_contiguous(),
        "new storage for parameters has the form of the old");
  values = storage;
  for (Entry& entry : entries_) entry.parameter.set_data(value_of(entry).view(entry.parameter.sizes().vec()));
}

void FlatParams::move_grads(const at::Tensor& storage) {
  check(storage.sizes() == grads.sizes() && storage.dtype() == grads.dtype() && storage.is_contiguous() &&
            storage.device() == grads.device(),
        "new storage for gradients has the form of the old");
  grads = storage;
  for (Entry& entry : entries_)
    entry.parameter.mutable_grad() = grad_of(entry).view(entry.parameter.sizes().vec());
}

at::Tensor FlatParams::value_of(const Entry& entry) const {
  return values.narrow(0, entry.offset, entry.size);
}
at::Tensor FlatParams::grad_of(const Entry& entry) const { return grads.narrow(0, entry.offset, entry.size); }

const FlatParams::Entry* FlatParams::find(const at::Tensor& table) const {
  for (const Entry& entry : entries_) {
    if (entry.parameter.is_same(table) || entry.parameter.data_ptr() == table.data_ptr()) return &entry;
  }
  return nullptr;
}

void FlatParams::keep_half(at::ScalarType type) {
  int64_t total = 0;
  for (const bool matrices : {true, false}) {
    for (Entry& entry : entries_) {
      if ((entry.parameter.dim() >= 2) != matrices) continue;
      entry.half_offset = total;
      total += round_up(entry.size, static_cast<int64_t>(c10::elementSize(type)));
    }
  }
  half = at::zeros({total}, values.options().dtype(type));
  half_fresh = false;
  layout.reset();
}

at::Tensor FlatParams::half_of(const Entry& entry) const {
  const at::Tensor flat = half.narrow(0, entry.half_offset, entry.size);
  const at::IntArrayRef sizes = entry.parameter.sizes();
  if (!entry.channels_last()) return flat.view(sizes);
  return flat.view({sizes[0], sizes[2], sizes[3], sizes[1]}).permute({0, 3, 1, 2});
}

void FlatParams::zero_grads() { grads.zero_(); }

void FlatParams::zero_grads(const std::vector<RowUse>& rows) {
  int64_t begin = 0;
  for (const Entry& entry : entries_) {
    bool by_rows = false;
    for (const RowUse& use : rows) {
      if (find(use.table) != &entry) continue;
      by_rows = true;
      grad_of(entry).view(use.table.sizes()).index_fill_(0, use.rows.reshape({-1}).to(grads.device()), 0);
    }
    if (!by_rows) continue;
    grads.narrow(0, begin, entry.offset - begin).zero_();
    begin = entry.offset + entry.size;
  }
  grads.narrow(0, begin, size() - begin).zero_();
}

std::optional<std::string> FlatParams::strayed() const {
  const auto address = [](const at::Tensor& flat, int64_t offset) {
    return static_cast<const char*>(flat.data_ptr()) + offset * flat.element_size();
  };
  for (const Entry& entry : entries_) {
    const at::Tensor& grad = entry.parameter.grad();
    if (entry.parameter.data_ptr() != address(values, entry.offset) || !grad.defined() ||
        grad.data_ptr() != address(grads, entry.offset)) {
      return entry.name;
    }
  }
  return std::nullopt;
}

void FlatParams::check_views() const {
  if (const auto name = strayed())
    throw InternalError("the parameter " + *name + " or its gradient left the flat array");
}

}  // namespace syncopate::tensor
