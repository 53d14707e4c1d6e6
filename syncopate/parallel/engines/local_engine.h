#pragma once

#include "syncopate/parallel/engine.h"

namespace syncopate::parallel {

/// The whole model on this rank.
class LocalEngine : public Engine {
 public:
  Gradients run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                const EngineEvents& events) override;
};

}  // namespace syncopate::parallel
