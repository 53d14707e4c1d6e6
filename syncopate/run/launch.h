#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/emulation/lab.h"

namespace syncopate::run {

struct LaunchOptions {
  int workers = 1;
  std::filesystem::path program = "/proc/self/exe";
  std::vector<std::string> argv;  ///< argv[0] included; the same for every worker
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours for every worker
  std::filesystem::path
      log_folder;  ///< rank 1 and up write into rank<k>.log there; empty: they share our output
  std::chrono::milliseconds timeout{20000};
  /// The emulated network that the workers sit on, and the host of each; none: all are here.
  std::optional<emulation::Inside> lab{};
  std::vector<int> seats{};
  /// Told what the user should know while the run goes on; empty: nobody is.
  std::function<void(const std::string&)> note{};
};

struct LaunchResult {
  int exit_code = 0;       ///< 4: a rank died or hung; a worker's own code when it failed; 130: interrupted
  int rank = -1;           ///< whose failure was the first
  std::string sentence{};  ///< the first cause, for the user; empty when there was none
  bool names_log = false;  ///< the sentence does
};

/// Runs `workers` copies of the program to their end, with the variables find_world() reads; this process
/// serves their rendezvous on loopback, or where rank 0 sits on an emulated network, and stays there. The
/// first failure ends the rest within 3 s. SIGINT and SIGTERM are passed on; a second one kills all at once.
/// A worker that stands still because somebody has stopped it is named in a note within 3 s; the others wait
/// for it until the timeout. Prints nothing. Throws CommError or DataError when the workers cannot be
/// started.
LaunchResult launch(const LaunchOptions& options);

/// A process's own words, for those that it starts.
std::vector<std::string> words_of(char** argv);

/// A worker's first act: when our launcher started it, the kernel ends it with the launcher, however that
/// dies.
void die_with_parent();

/// From here on copies of this program that this process starts do the same with it.
void be_the_parent();

}  // namespace syncopate::run
