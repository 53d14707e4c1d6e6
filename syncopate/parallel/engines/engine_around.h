#pragma once

#include <memory>
#include <utility>

#include "syncopate/parallel/engine.h"

namespace syncopate::parallel {

/// Does what another engine does: for one that changes some of it.
class EngineAround : public Engine {
 public:
  explicit EngineAround(std::unique_ptr<Engine> inner) : inner_(std::move(inner)) {}

  Gradients run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                const EngineEvents& events) override {
    return inner_->run(replica, micro, noise_key, events);
  }
  void infer(nn::Model& model, tensor::Precision precision, int64_t batches, const MakeBatch& batch,
             const UseOutput& use) override {
    inner_->infer(model, precision, batches, batch, use);
  }
  void code_inferences(bool coded) override { inner_->code_inferences(coded); }
  bool keeps_state() const override { return inner_->keeps_state(); }
  void save_state(const std::filesystem::path& stem) override { inner_->save_state(stem); }
  void load_state(const std::filesystem::path& stem) override { inner_->load_state(stem); }
  void forget_state() override { inner_->forget_state(); }

 protected:
  Engine& inner() const { return *inner_; }

 private:
  std::unique_ptr<Engine> inner_;
};

}  // namespace syncopate::parallel
