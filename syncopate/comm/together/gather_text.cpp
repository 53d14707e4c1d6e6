#include "syncopate/comm/together/gather_text.h"

#include <ATen/ATen.h>

#include <cstring>

namespace syncopate::comm {
namespace {

constexpr int kTextTag = 72;

}  // namespace

std::vector<std::string> gather_text(Group& group, const std::string& text, int root) {
  const at::Tensor size = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  if (group.rank() != root) {
    const at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
    if (!text.empty()) std::memcpy(bytes.data_ptr(), text.data(), text.size());
    group.send(size, root, kTextTag).wait();
    if (!text.empty()) group.send(bytes, root, kTextTag).wait();
    return {};
  }
  std::vector<std::string> all(static_cast<size_t>(group.size()));
  for (int rank = 0; rank < group.size(); ++rank) {
    std::string& theirs = all[static_cast<size_t>(rank)];
    if (rank == root) {
      theirs = text;
      continue;
    }
    group.receive(size, rank, kTextTag).wait();
    const at::Tensor bytes = at::empty({size.item<int64_t>()}, at::kByte);
    if (bytes.numel() == 0) continue;
    group.receive(bytes, rank, kTextTag).wait();
    theirs.assign(static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel()));
  }
  return all;
}

}  // namespace syncopate::comm
