#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "syncopate/spec/run_spec.h"

// What runs read from the disk, known again by content.
namespace syncopate::lab {

/// The content of what a run reads, by setting: {"task.data": "<hash>", "model.init_from": "<hash>"}.
using Fingerprints = std::map<std::string, std::string>;

/// How a run was made.
struct Made {
  bool alone = true;   ///< nothing else of the sweep ran at the same time
  double seconds = 0;  ///< of all its processes; 0: not known
};

/// Remembers, in a file of the sweep's folder, what each run read and how it was made. A file's content is
/// hashed once and again only after its size or modification time changed.
class InputBook {
 public:
  explicit InputBook(std::filesystem::path file);  ///< inputs.json; a damaged one counts as empty
  ~InputBook();
  InputBook(const InputBook&) = delete;
  InputBook& operator=(const InputBook&) = delete;

  /// As they are now; throws DataError where a file cannot be read.
  Fingerprints now(const spec::RunSpec& spec);
  /// What the run in this folder (relative to the sweep's) read; none: not known, or nothing.
  std::optional<Fingerprints> of_run(const std::string& folder) const;
  /// Notes that the run in this folder read these.
  void note(const std::string& folder, const Fingerprints& inputs);
  /// How the run in this folder was made, which no later sweep can know by itself.
  Made made(const std::string& folder) const;
  void note(const std::string& folder, const Made& made);
  void save();  ///< where something changed

  /// Of a file, or of all files in a folder and below.
  std::string hash_of(const std::filesystem::path& path);

 private:
  std::filesystem::path file_;
  std::unique_ptr<nlohmann::json> book_;
  bool changed_ = false;
};

}  // namespace syncopate::lab
