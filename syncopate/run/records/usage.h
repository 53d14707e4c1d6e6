#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

// What a run takes of its machine, and what others take meanwhile.
namespace syncopate::run {

int64_t machine_cores();  ///< that are online, whatever this process may use of them
int64_t peak_memory();    ///< the most that this process held, in bytes (VmHWM); 0: not known

/// How many cores processes that are not of this run keep busy, as a mean since it was made: what the machine
/// did (/proc/stat, with what a hypervisor gave to others) less what the run's processes did. In a container
/// the machine is the host, unless the container has a /proc/stat of its own.
class OutsideLoad {
 public:
  struct Source {
    std::filesystem::path proc = "/proc";
    std::function<double()> seconds{};  ///< a clock; empty: the machine's
    double ticks_per_second = 0;        ///< of the numbers in /proc; 0: the machine's
  };
  /// `ours`: the run's processes on this machine.
  explicit OutsideLoad(std::vector<pid_t> ours) : OutsideLoad(std::move(ours), Source()) {}
  OutsideLoad(std::vector<pid_t> ours, Source source);

  /// Looks again, if the last look was some time ago: cheap enough for every step. While all of the run's
  /// processes live: what one of them did is not known after its end.
  void look();
  double mean() const;  ///< in cores; not a number: not known, or too short a time

 private:
  struct Reading {
    double at = 0;
    double machine = 0, ours = 0;  ///< CPU seconds
  };
  std::optional<Reading> read() const;
  double now() const;

  std::vector<pid_t> ours_;
  Source source_;
  std::optional<Reading> first_, last_;
};

}  // namespace syncopate::run
