#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/state.h"

// A checkpoint is made of parts that save and restore themselves. It is one file, which rank 0 alone writes
// and reads: other machines need not see it. What all ranks have alike stands in it once, under its name;
// what is rank 2's own under "rank2.NAME".
namespace syncopate::train {

/// How a run resumes.
struct Resumption {
  int ranks_before = 1, ranks_now = 1;
  std::vector<std::string> notes;  ///< for users: what was kept, dropped, or is not as it was

  bool resized() const { return ranks_before != ranks_now; }
  void note(const std::string& text);  ///< once, however often it is said
};

/// Something of which a checkpoint holds tensors and plain values. Every rank has the same parts and makes
/// the same calls, so that any of them may be collective.
class CheckpointPart {
 public:
  virtual ~CheckpointPart() = default;
  virtual std::string name() const = 0;  ///< under which its values stand
  /// Its tensors as they are now.
  virtual std::vector<parallel::StateTensor> to_save() { return {}; }
  /// Where they go when a run resumes.
  virtual std::vector<parallel::StateTensor> to_restore() { return to_save(); }
  virtual nlohmann::ordered_json values() { return {}; }  ///< rank 0's are kept
  /// Throws ConfigError where these values are not to be resumed from; nothing was written into yet.
  virtual void require(const nlohmann::ordered_json& /*values*/) {}
  /// The tensors are in place, and those of the parts before this one are restored.
  virtual void restored(const nlohmann::ordered_json& /*values*/, Resumption&) {}
};

using CheckpointParts = std::span<CheckpointPart* const>;

/// Plain values that their owner keeps.
class ValuesPart : public CheckpointPart {
 public:
  using Save = std::function<nlohmann::ordered_json()>;
  using Restore = std::function<void(const nlohmann::ordered_json&, Resumption&)>;
  ValuesPart(std::string name, Save save, Restore restore)
      : name_(std::move(name)), save_(std::move(save)), restore_(std::move(restore)) {}
  std::string name() const override { return name_; }
  nlohmann::ordered_json values() override { return save_(); }
  void restored(const nlohmann::ordered_json& values, Resumption& how) override { restore_(values, how); }

 private:
  std::string name_;
  Save save_;
  Restore restore_;
};

/// Work of rank 0; where it fails, every rank throws its sentence as a DataError. Collective.
void at_rank_zero(comm::Group& group, const std::function<void()>& work);

/// Work of every rank; what the first rank said that failed, empty where none did. Collective.
std::string at_every_rank(comm::Group& group, const std::function<void()>& work);

/// At rank 0 all ranks' tensors on the host, as a checkpoint calls them: what is common from the first rank
/// that has it (of a model in stages each rank has some). Elsewhere nothing. Collective.
std::vector<tensor::NamedTensor> gather(comm::Group& group, const std::vector<parallel::StateTensor>& mine);
/// Rank 0's values into every rank's common tensors of these names. Collective.
void spread(comm::Group& group, const std::vector<parallel::StateTensor>& mine,
            const std::map<std::string, at::Tensor>& values);

/// Writes the file. Collective. Throws DataError, on every rank, when the disk is full; the old checkpoint
/// then still stands.
void save_checkpoint(const std::filesystem::path& path, comm::Group& group, CheckpointParts parts);

/// Fills the parts from the file, in their order. Collective. Throws the same DataError on every rank when
/// the file is missing, damaged or of another model; nothing was written into then.
Resumption restore_checkpoint(const std::filesystem::path& path, comm::Group& group, CheckpointParts parts);

}  // namespace syncopate::train
