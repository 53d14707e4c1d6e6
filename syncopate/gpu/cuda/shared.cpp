#include "syncopate/gpu/shared.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <unistd.h>

#include <cstring>

#include "syncopate/gpu/cuda/jobs.h"

namespace syncopate::gpu {
namespace {

std::array<char, 16> this_gpu() { return identity({c10::kCUDA, c10::cuda::current_device()}); }

}  // namespace

std::array<char, 16> identity(c10::Device device) {
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device.index()));
  std::array<char, 16> id{};
  std::memcpy(id.data(), &properties.uuid, id.size());
  return id;
}

Handle share(const at::Tensor& tensor) {
  Handle made;
  static const std::array<char, 16> gpu = this_gpu();
  made.gpu = gpu;
  made.process = ::getpid();
  made.bytes = static_cast<int64_t>(tensor.nbytes());
  void* base = nullptr;
  try {
    size_t size = 0;
    base = c10::cuda::CUDACachingAllocator::getBaseAllocation(tensor.data_ptr(), &size);
  } catch (const std::exception&) {  // memory that libtorch did not allocate
    return made;
  }
  cudaIpcMemHandle_t handle;
  if (cudaIpcGetMemHandle(&handle, base) != cudaSuccess) {
    (void)cudaGetLastError();
    return made;
  }
  std::memcpy(made.memory.data(), &handle, sizeof handle);
  made.offset = static_cast<const char*>(tensor.data_ptr()) - static_cast<const char*>(base);
  made.shared = 1;
  return made;
}

Mappings::~Mappings() {
  for (const auto& [handle, address] : mapped_) (void)cudaIpcCloseMemHandle(address);
  (void)cudaGetLastError();
}

void* Mappings::find(const Handle& handle) {
  static const std::array<char, 16> gpu = this_gpu();
  if (handle.shared == 0 || handle.gpu != gpu || handle.process == ::getpid()) return nullptr;
  auto found = mapped_.find(handle.memory);
  if (found == mapped_.end()) {
    cudaIpcMemHandle_t memory;
    std::memcpy(&memory, handle.memory.data(), sizeof memory);
    void* address = nullptr;
    if (cudaIpcOpenMemHandle(&address, memory, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) {
      (void)cudaGetLastError();
      return nullptr;
    }
    found = mapped_.emplace(handle.memory, address).first;
  }
  return static_cast<char*>(found->second) + handle.offset;
}

void sum_into_all(const std::vector<void*>& arrays, int64_t begin, int64_t end) {
  if (begin >= end) return;
  SumJob job{.count = static_cast<int>(arrays.size()), .begin = begin, .end = end};
  for (size_t i = 0; i < arrays.size(); ++i) job.arrays[i] = static_cast<float*>(arrays[i]);
  launch(job, c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_CHECK(cudaGetLastError());
}

void copy_from(const at::Tensor& into, const void* from) {
  C10_CUDA_CHECK(cudaMemcpyAsync(into.data_ptr(), from, into.nbytes(), cudaMemcpyDeviceToDevice,
                                 c10::cuda::getCurrentCUDAStream().stream()));
}

void finish() { c10::cuda::getCurrentCUDAStream().synchronize(); }

}  // namespace syncopate::gpu
