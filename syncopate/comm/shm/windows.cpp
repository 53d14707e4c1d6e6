#include "syncopate/comm/shm/windows.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/comm/shm/memory_file.h"
#include "syncopate/comm/together/broadcast_text.h"

namespace syncopate::comm {
namespace {

/// Null where this rank cannot have it, or what it makes sure of: each rank of an equal share, so that the
/// pages lie near their most frequent user.
std::shared_ptr<ShmWindow> map_window(const MemoryFile& file, int64_t each, int parts, const Group& group) {
  const int64_t bytes = each * parts;
  const auto border = [&](int rank) { return rank * whole_pages(bytes / group.size()); };
  const int64_t from = std::min(border(group.rank()), bytes), to = std::min(border(group.rank() + 1), bytes);
  try {
    if (to > from) file.back(from, to - from);
    auto window = std::make_shared<ShmWindow>(file.map(), each, parts);
    (void)::madvise(window->part(0), static_cast<size_t>(bytes), MADV_HUGEPAGE);  // where the system would
    return window;
  } catch (const CommError&) {
    return nullptr;
  }
}

/// A MemoryFile made of these; nothing where the system refuses.
template <typename... Args>
std::optional<MemoryFile> file_of(const Args&... args) {
  try {
    return MemoryFile(args...);
  } catch (const CommError&) {
    return std::nullopt;
  }
}

/// Null on all ranks where one cannot have it.
std::shared_ptr<ShmWindow> make_window(Group& group, int64_t each, int parts) {
  std::optional<MemoryFile> file;
  if (group.rank() == 0) file = file_of(parts * each, 0);
  const std::string address = broadcast_text(group, file ? file->address() : "", 0);
  if (!file && !address.empty()) file = file_of(address, parts * each);
  std::shared_ptr<ShmWindow> window = file ? map_window(*file, each, parts, group) : nullptr;
  at::Tensor all_have = at::full({1}, window ? 1 : 0, at::kLong);  // and rank 0's file stays open until then
  group.all_reduce(all_have, Op::kMin).wait();
  return all_have.item<int64_t>() == 1 ? window : nullptr;
}

int64_t pages_for(int64_t count, at::ScalarType type) {
  check(count > 0, "a window holds something");
  return whole_pages(count * static_cast<int64_t>(at::elementSize(type)));
}

/// A part of a window, which it keeps.
at::Tensor tensor_in(std::shared_ptr<ShmWindow> window, int part, int64_t count, at::ScalarType type) {
  std::byte* const at = window->part(part);
  return at::from_blob(
      at, {count}, [window = std::move(window)](void*) {}, at::TensorOptions().dtype(type));
}

}  // namespace

ShmWindow::~ShmWindow() { ::munmap(base_, static_cast<size_t>(parts_ * each_)); }

at::Tensor ShmWindows::open(Group& group, int64_t count, at::ScalarType type) {
  const std::shared_ptr<ShmWindow> window = make_window(group, pages_for(count, type), group.size());
  if (!window) return at::zeros({count}, type);
  windows_.push_back(window);
  return tensor_in(window, group.rank(), count, type);
}

at::Tensor ShmWindows::open_common(Group& group, int64_t count, at::ScalarType type) {
  const std::shared_ptr<ShmWindow> window = make_window(group, pages_for(count, type), 1);
  return window ? tensor_in(window, 0, count, type) : at::Tensor();
}

std::optional<ShmWindows::Place> ShmWindows::find(const at::Tensor& tensor, int rank) const {
  constexpr int64_t kMostBytes = int64_t{1} << 44;
  const auto* const address = static_cast<const std::byte*>(tensor.data_ptr());
  for (size_t number = 0; number < windows_.size(); ++number) {
    std::shared_ptr<ShmWindow> window = windows_[number].lock();
    if (!window) continue;
    const std::byte* const part = window->part(rank);
    if (address < part || address + tensor.nbytes() > part + window->each()) continue;
    const int64_t offset = address - part;
    return Place{std::move(window), offset, static_cast<int64_t>(number + 1) * kMostBytes + offset};
  }
  return std::nullopt;
}

}  // namespace syncopate::comm
