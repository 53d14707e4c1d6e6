#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/engine.h"
#include "syncopate/parallel/pipeline/activation_codec.h"
#include "syncopate/parallel/pipeline/schedule.h"

namespace syncopate::parallel {

/// What a stage has done in its steps so far.
struct StageWork {
  double forward = 0, backward = 0;                  ///< seconds of compute
  double coding = 0;                                 ///< seconds of packing and unpacking what travels
  double waiting_forward = 0, waiting_backward = 0;  ///< seconds blocked for activations, for their gradients
  double sending = 0;                                ///< seconds blocked until what was sent earlier had left
  double forward_bytes = 0, backward_bytes = 0;      ///< sent
  double tied_bytes = 0;  ///< sent of tables that the first and the last stage read
  int64_t steps = 0;

  StageWork operator-(const StageWork& earlier) const;
};

/// One stage of a model on this rank: `Replica::model` has its layers alone. Micro-batches flow through the
/// ranks of `stages`, hidden states forwards and their gradients backwards, while others are computed. Every
/// stage of a replica is given the same micro-batches.
class PipelineEngine : public Engine {
 public:
  struct Options {
    Schedule schedule = Schedule::k1F1B;
    bool recompute = false;
    ActivationOptions activation{};
    uint64_t run = 0;  ///< what buffers belong to
    int replica = 0;
    bool coded_evaluations = false;  ///< evaluations see what the codec makes of hidden states
    /// Tables that the first stage has and the last one reads, too: the first stage's parameters; at the last
    /// stage what stands in for them. Empty elsewhere.
    std::vector<at::Tensor> tied{};
  };
  PipelineEngine(comm::Group& stages, Options options);

  Gradients run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                const EngineEvents& events) override;
  void infer(nn::Model& model, tensor::Precision precision, int64_t batches, const MakeBatch& batch,
             const UseOutput& use) override;

  void code_inferences(bool coded) override { options_.coded_evaluations = coded; }
  bool keeps_state() const override;
  void save_state(const std::filesystem::path& stem) override;
  void load_state(const std::filesystem::path& stem) override;
  void forget_state() override;

  const StageWork& work() const { return work_; }
  /// The same without the first step, which warms caches up, where there are others.
  StageWork warm_work() const { return work_.steps > 1 ? work_ - first_step_ : work_; }
  /// The ends of the cuts before and behind this stage; null where there is none.
  ActivationCodec* before() const { return before_.get(); }
  ActivationCodec* after() const { return after_.get(); }

 private:
  class Step;
  class Scoring;
  bool first() const { return stages_.rank() == 0; }
  bool last() const { return stages_.rank() + 1 == stages_.size(); }
  void make_codecs();
  void send(const at::Tensor& message, int to, int tag, double& bytes);
  void finish_sends(size_t left);

  comm::Group& stages_;
  Options options_;
  std::unique_ptr<ActivationCodec> before_, after_, plain_;
  std::deque<comm::Pending> sends_;  ///< under way
  StageWork work_, first_step_;
};

}  // namespace syncopate::parallel
