#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/spec/run_spec.h"

// The seam between a sweep and the programs that it runs: tests put their own in its place.
namespace syncopate::lab {

struct Launch {
  spec::RunSpec spec{};
  std::filesystem::path folder{};
  bool resume = false;
  std::vector<int> cores{};     ///< that it may use; empty: all
  std::filesystem::path log{};  ///< takes what it says
};

struct Ending {
  int exit_code = 0;
  int signal = 0;                    ///< that killed it; 0: none
  std::string message{};             ///< its last words, where it failed
  std::vector<std::string> notes{};  ///< what it noted
};

/// A run that goes on.
class RunInProgress {
 public:
  virtual ~RunInProgress() = default;
  virtual std::optional<Ending> look() = 0;  ///< does not block; asked no more once it has ended
  virtual void stop() = 0;                   ///< in order, with a checkpoint
  virtual void pause(bool) {}                ///< stand still, or go on
  struct Steps {
    int64_t done = 0, of = 0;
  };
  virtual std::optional<Steps> steps() { return std::nullopt; }  ///< as far as it has told
};

class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::unique_ptr<RunInProgress> start(const Launch& launch) = 0;
};

/// Runs `syncopate train` in processes of their own.
std::unique_ptr<Runner> process_runner();

/// The words of `syncopate train` for these settings.
std::vector<std::string> command_for(spec::RunSpec spec, const std::filesystem::path& folder, bool resume);

/// The cores that this process may use.
std::vector<int> own_cores();

}  // namespace syncopate::lab
