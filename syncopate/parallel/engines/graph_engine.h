#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "syncopate/gpu/graph.h"
#include "syncopate/parallel/engine.h"

namespace syncopate::parallel {

/// The whole model on this rank, on a GPU that is not told every kernel anew: the passes of a micro-batch are
/// recorded once for every shape and launched as a whole after that. Batches are brought into one of a few
/// shapes (Model::in_common_shape). A step that has a shape for the first time is left to the engine within,
/// which also takes over for good where recording fails.
class GraphEngine : public Engine {
 public:
  /// `note` is told in one sentence why nothing is recorded, should that happen.
  GraphEngine(std::unique_ptr<Engine> plain, std::function<void(const std::string&)> note);
  ~GraphEngine() override;
  Gradients run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                const EngineEvents& events) override;
  int64_t recorded() const { return recorded_; }  ///< shapes so far

 private:
  struct Packed;
  struct Shape;  ///< a shape that was seen, and what is recorded of it

  Shape* find(Replica& replica, const tensor::Batch& batch);
  void record(Replica& replica, const tensor::Batch& batch, Shape& shape);
  void upload(const tensor::Batch& batch, Shape& shape);

  std::unique_ptr<Engine> plain_;
  std::function<void(const std::string&)> note_;
  bool records_ = true;
  bool full_ = false;  ///< no more shapes
  int64_t recorded_ = 0;
  std::map<std::string, std::unique_ptr<Shape>> shapes_;
  const gpu::Graph* memory_ = nullptr;          ///< whose memory all graphs share
  std::unique_ptr<gpu::SideStream> uploads_{};  ///< batches move there beside the step before
};

}  // namespace syncopate::parallel
