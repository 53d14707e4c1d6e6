#include "syncopate/comm/together/broadcast_text.h"

#include <ATen/ATen.h>

#include <cstring>

namespace syncopate::comm {

std::string broadcast_text(Group& group, const std::string& text, int root) {
  at::Tensor size = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  group.broadcast(size, root).wait();
  at::Tensor bytes = at::zeros({size.item<int64_t>()}, at::kByte);
  if (bytes.numel() == 0) return {};
  if (group.rank() == root) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  group.broadcast(bytes, root).wait();
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel())};
}

}  // namespace syncopate::comm
