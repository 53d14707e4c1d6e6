#include "syncopate/gpu/seed.h"

#include <ATen/Context.h>

#include <mutex>

#include "syncopate/base/rng.h"

namespace syncopate::gpu {

void seed(c10::Device device, uint64_t key, std::span<const int64_t> examples) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(examples.empty() ? key : mix_key(key, examples.front()));
}

}  // namespace syncopate::gpu
