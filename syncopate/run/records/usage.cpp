#include "syncopate/run/records/usage.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

namespace syncopate::run {
namespace {

constexpr double kBetweenLooks = 0.5;  // seconds
constexpr double kLeastSpan = 0.2;     // seconds; ticks are coarse

/// User, nice, system, irq, softirq and steal of all cores, in ticks. Idle and waiting for disks is not busy;
/// what guests take is in "user" already.
std::optional<double> busy_ticks(const std::filesystem::path& proc) {
  std::ifstream file(proc / "stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, disk = 0, irq = 0, soft = 0, stolen = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> disk >> irq >> soft) || name != "cpu")
    return std::nullopt;
  file >> stolen;  // not of very old kernels
  return user + nice + system + irq + soft + stolen;
}

/// A process's own time in user and system mode, in ticks.
std::optional<double> ticks_of(const std::filesystem::path& proc, pid_t process) {
  std::ifstream file(proc / std::to_string(process) / "stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The name stands in parentheses and may hold anything: fields are counted from its end.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  return user + system;
}

}  // namespace

int64_t machine_cores() { return std::max<int64_t>(1, ::sysconf(_SC_NPROCESSORS_ONLN)); }

int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return 1024 * std::strtoll(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

OutsideLoad::OutsideLoad(std::vector<pid_t> ours, Source source)
    : ours_(std::move(ours)), source_(std::move(source)) {
  if (source_.ticks_per_second <= 0) source_.ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  first_ = read();
}

double OutsideLoad::now() const {
  if (source_.seconds) return source_.seconds();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<OutsideLoad::Reading> OutsideLoad::read() const {
  Reading reading{.at = now()};
  const auto busy = busy_ticks(source_.proc);
  if (!busy) return std::nullopt;
  reading.machine = *busy / source_.ticks_per_second;
  for (const pid_t process : ours_) {
    const auto ticks = ticks_of(source_.proc, process);
    if (!ticks) return std::nullopt;
    reading.ours += *ticks / source_.ticks_per_second;
  }
  return reading;
}

void OutsideLoad::look() {
  if (!first_ || now() - (last_ ? last_ : first_)->at < kBetweenLooks) return;
  if (const auto reading = read()) last_ = reading;
}

double OutsideLoad::mean() const {
  if (!first_ || !last_ || last_->at - first_->at < kLeastSpan) return std::nan("");
  const double machine = last_->machine - first_->machine, ours = last_->ours - first_->ours;
  // A /proc/stat that stands still, as some sandboxes have it, says nothing.
  if (machine < 0.5 * ours || machine <= 0) return std::nan("");
  return std::max(0.0, (machine - ours) / (last_->at - first_->at));
}

}  // namespace syncopate::run
