#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

// Memory of one GPU that several processes see, by CUDA's inter-process handles.
namespace syncopate::gpu {

/// A GPU's number in the world: alike in all processes, whatever they call it.
std::array<char, 16> identity(c10::Device device);

/// Where a tensor lies, in words that another process on the same GPU understands.
struct Handle {
  std::array<char, 64> memory{};  ///< CUDA's, of the allocation that the tensor is in
  std::array<char, 16> gpu{};     ///< which one
  int64_t offset = 0, bytes = 0;
  int64_t process = 0;  ///< whose it is: it cannot open its own handles
  int64_t shared = 0;   ///< 0: this tensor cannot be shared
};

/// Of a contiguous tensor; not shared where CUDA refuses.
Handle share(const at::Tensor& tensor);

/// Other processes' memory, mapped into this one when it is first asked for.
class Mappings {
 public:
  Mappings() = default;
  ~Mappings();
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;
  /// Null where it cannot be mapped here: another GPU, or a driver or container that forbids it.
  void* find(const Handle& handle);

 private:
  std::map<std::array<char, 64>, void*> mapped_;
};

/// Adds up elements begin..end-1 of fp32 arrays, in their order, and writes the sums into all of them.
void sum_into_all(const std::vector<void*>& arrays, int64_t begin, int64_t end);
/// Onto a tensor of this process; does not wait.
void copy_from(const at::Tensor& into, const void* from);
/// Waits for what this thread has asked of the GPU.
void finish();

}  // namespace syncopate::gpu
