#pragma once

#include "syncopate/parallel/engine.h"

namespace syncopate::parallel {

struct LocalEngineOptions {
  /// Makes each layer's forward pass twice instead of keeping what it computed: less memory, a third more
  /// time, the same gradients bit for bit. Models of one layer are left as they are.
  bool recompute = false;
};

/// The whole model on this rank.
class LocalEngine : public Engine {
 public:
  explicit LocalEngine(LocalEngineOptions options = {}) : options_(options) {}
  Gradients run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                const EngineEvents& events) override;

 private:
  LocalEngineOptions options_;
};

}  // namespace syncopate::parallel
