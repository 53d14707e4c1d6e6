#include "syncopate/comm/shm/windows.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include "syncopate/base/error.h"
#include "syncopate/comm/broadcast_text.h"
#include "syncopate/comm/shm/memory_file.h"

namespace syncopate::comm {
namespace {

/// Null where this rank cannot have it.
std::shared_ptr<ShmWindow> map_window(const std::optional<MemoryFile>& file, int64_t each, int rank,
                                      int ranks) {
  if (!file) return nullptr;
  try {
    file->back(rank * each, each);
    auto window = std::make_shared<ShmWindow>(file->map(), each, ranks);
    (void)::madvise(window->part(0), static_cast<size_t>(ranks * each),
                    MADV_HUGEPAGE);  // where the system would
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

}  // namespace

ShmWindow::~ShmWindow() { ::munmap(base_, static_cast<size_t>(ranks_ * each_)); }

at::Tensor ShmWindows::open(Group& group, int64_t count, at::ScalarType type) {
  check(count > 0, "a window holds something");
  const auto bytes = count * static_cast<int64_t>(at::elementSize(type));
  const int64_t each = whole_pages(bytes);
  std::optional<MemoryFile> file;
  if (group.rank() == 0) file = file_of(group.size() * each, 0);
  const std::string address = broadcast_text(group, file ? file->address() : "", 0);
  if (!file && !address.empty()) file = file_of(address, group.size() * each);
  std::shared_ptr<ShmWindow> window = map_window(file, each, group.rank(), group.size());
  at::Tensor all_have = at::full({1}, window ? 1 : 0, at::kLong);  // and rank 0's file stays open until then
  group.all_reduce(all_have, Op::kMin).wait();
  if (all_have.item<int64_t>() == 0) return at::zeros({count}, type);
  windows_.push_back(window);
  return at::from_blob(
      window->part(group.rank()), {count}, [window](void*) {}, at::TensorOptions().dtype(type));
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
