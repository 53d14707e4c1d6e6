#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "syncopate/comm/group.h"
#include "syncopate/nn/model.h"
#include "syncopate/record/record.h"

namespace syncopate::train {

/// The best model of a run so far, in a file beside its checkpoint: best-STEP.safetensors. A run that is
/// killed goes on from its checkpoint, and what came after that did not happen: so the file that a checkpoint
/// speaks of stays until a checkpoint speaks of another. Every rank has one and makes the same calls; rank 0
/// alone writes and reads.
class BestModel {
 public:
  BestModel(const std::filesystem::path& checkpoint, comm::Group& group)
      : folder_(checkpoint.parent_path()), group_(group) {}

  /// `model`, the one that was evaluated, is kept if it is better than all before; of equals the first is.
  /// Collective. Throws DataError when the disk is full.
  void offer(const nn::Model& model, const record::EvalRecord& eval);
  const std::optional<record::EvalRecord>& eval() const { return best_; }  ///< none: nothing was offered yet

  /// Makes every rank's `model` the best one. Collective. Throws DataError when the file is damaged.
  void load(nn::Model& model);

  nlohmann::ordered_json state() const;  ///< for a checkpoint
  void saved();                          ///< a checkpoint with that state stands
  /// Goes on from such a checkpoint. Collective. Throws DataError when the file is missing or damaged.
  void restore(const nlohmann::ordered_json& state);

 private:
  std::filesystem::path path_of(int64_t step) const;
  void remove_others();  ///< files that neither the best model is in nor the checkpoint speaks of

  std::filesystem::path folder_;
  comm::Group& group_;
  std::optional<record::EvalRecord> best_;
  int64_t saved_step_ = -1;  ///< of the one that the checkpoint speaks of; -1: of none
};

}  // namespace syncopate::train
