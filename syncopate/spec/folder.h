#pragma once

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "syncopate/base/folder_lock.h"
#include "syncopate/record/run_folder.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::spec {

/// What a run notes about itself in spec.json, beside its settings.
inline constexpr std::array<const char*, 2> kNotes{"began_with", "extended"};

/// What a command says about the folder of its run.
struct FolderRequest {
  std::string out;        ///< --out; empty: below runs/, named after the settings
  bool resume = false;    ///< --resume
  bool extend = false;    ///< --extend: settings may change that make it another run
  std::string command{};  ///< told to whoever finds the folder in use
  /// How long a sign of life of a holder on another machine is waited for; `note` is told that it is.
  std::chrono::milliseconds patience{12000};
  std::function<void(const std::string&)> note{};
};

/// The folder a run writes into. A new run gets one that holds none: `out`, where one that holds a run
/// already is refused, or the next free name. A run that resumes takes the folder that holds it. Throws
/// ConfigError. Makes no folder.
record::RunFolder choose_folder(RunSpec& spec, const FolderRequest& request);

/// The folder that `folder` is in, however that is called: "runs" of "runs/a" and of "runs/a/".
std::filesystem::path folder_around(const std::filesystem::path& folder);

struct ClaimedFolder {
  record::RunFolder folder;
  FolderLock lock;
  bool fresh = false;              ///< was not there before
  std::vector<std::string> notes;  ///< what is otherwise than when the run began
};

/// The same, made and locked for this process; for a run that resumes, `spec` goes on with its settings.
/// Throws ConfigError that names who holds it.
ClaimedFolder claim_folder(RunSpec& spec, const FolderRequest& request);

/// Makes `spec` that of the run in the folder, going on, and says what changed: throws ConfigError unless it
/// has the settings that the run began with, save those that decide nothing (`Change`), the number of
/// workers, and with `extend` those that make it another run. Where the number of workers changed, now or
/// when the run was resumed before, the global batch stays what it was.
std::vector<std::string> resume_settings(RunSpec& spec, const record::RunFolder& folder, bool extend);

/// Lets `write` fill a model folder; it appears whole or not at all, in the place of one that was there.
void save_model(const std::filesystem::path& folder,
                const std::function<void(const std::filesystem::path&)>& write);

/// Makes the folder and writes spec.json into it. Of a run whose number of workers changed, that also says
/// under "began_with" what it was, so that the words of its first command are still known; of one that was
/// extended, under "extended" how.
void start_folder(const record::RunFolder& folder, RunSpec& spec);

}  // namespace syncopate::spec
