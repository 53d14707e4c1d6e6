#include "syncopate/comm/one_gpu/shared_device.h"

#include <ATen/ATen.h>
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace syncopate::comm {
namespace {

// CUDA's runtime is in the process when libtorch has it; its headers need not be here.
struct Handle {
  std::array<char, 64> reserved;
};

class Runtime {
 public:
  bool complete() const { return set_device && allocate && free && handle_of && open && close && last_error; }

  int (*set_device)(int) = find<int (*)(int)>("cudaSetDevice");
  int (*allocate)(void**, size_t) = find<int (*)(void**, size_t)>("cudaMalloc");
  int (*free)(void*) = find<int (*)(void*)>("cudaFree");
  int (*handle_of)(Handle*, void*) = find<int (*)(Handle*, void*)>("cudaIpcGetMemHandle");
  int (*open)(void**, Handle, unsigned) = find<int (*)(void**, Handle, unsigned)>("cudaIpcOpenMemHandle");
  int (*close)(void*) = find<int (*)(void*)>("cudaIpcCloseMemHandle");
  int (*last_error)() = find<int (*)()>("cudaGetLastError");

 private:
  template <typename Function>
  static Function find(const char* name) {
    void* symbol = ::dlsym(RTLD_DEFAULT, name);
    for (const char* library : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}) {
      if (symbol != nullptr) break;
      if (void* const loaded = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) symbol = ::dlsym(loaded, name);
    }
    return reinterpret_cast<Function>(symbol);
  }
};

/// What rank 0 tells the others.
struct Offer {
  int64_t made = 0;
  int64_t device = 0;
  int64_t process = 0;  ///< ranks of the same process use the address itself
  void* address = nullptr;
  Handle handle{};
};

constexpr unsigned kEnablePeerAccess = 1;

Offer make_offer(const Runtime& runtime, int64_t bytes) {
  Offer offer;
  offer.process = ::getpid();
  if (runtime.allocate(&offer.address, static_cast<size_t>(bytes)) != 0) return offer;
  if (runtime.handle_of(&offer.handle, offer.address) == 0) {
    offer.made = 1;
  } else {
    runtime.free(offer.address);
  }
  return offer;
}

void* take(const Runtime& runtime, const Offer& offer) {
  if (offer.made == 0) return nullptr;
  if (offer.process == ::getpid()) return offer.address;
  void* address = nullptr;
  return runtime.open(&address, offer.handle, kEnablePeerAccess) == 0 ? address : nullptr;
}

}  // namespace

at::Tensor share_device_memory(Group& group, c10::Device device, int64_t bytes) {
  const Runtime runtime;
  Offer offer;
  const bool able = runtime.complete() && runtime.set_device(device.index()) == 0;
  if (group.rank() == 0 && able) offer = make_offer(runtime, bytes);
  if (group.rank() == 0) offer.device = device.index();
  const at::Tensor message = at::empty({static_cast<int64_t>(sizeof offer)}, at::kByte);
  std::memcpy(message.data_ptr(), &offer, sizeof offer);
  group.broadcast(message, 0).wait();
  std::memcpy(&offer, message.data_ptr(), sizeof offer);
  void* const address = able && offer.device == device.index() ? take(runtime, offer) : nullptr;
  const at::Tensor all = at::full({1}, address != nullptr ? 1.0 : 0.0, at::kDouble);
  group.all_reduce(all, Op::kMin).wait();
  if (all.item<double>() == 0) {
    if (address != nullptr && offer.process != ::getpid()) runtime.close(address);
    group.barrier();  // memory is freed when nobody maps it any more
    if (group.rank() == 0 && offer.made != 0) runtime.free(offer.address);
    if (able) (void)runtime.last_error();  // libtorch would find it at its next call
    return {};
  }
  return at::from_blob(
      address, {bytes}, [](void*) {}, at::TensorOptions().dtype(at::kByte).device(device));
}

}  // namespace syncopate::comm
