#include "syncopate/sim/measured_for.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"

namespace syncopate::sim {
namespace {

[[noreturn]] void refuse(const std::string& flag, const std::string& measured, const std::string& asked) {
  throw ConfigError(
      "the profile was measured with {0} {1}, and {0} {2} is asked for; leave it out, or measure another "
      "with "
      "`syncopate probe --profile FILE`",
      flag, measured, asked);
}

void compare(const char* flag, const std::string& measured, const std::string& asked) {
  if (!measured.empty() && !asked.empty() && measured != asked) refuse(flag, measured, asked);
}

/// "cuda" is any of them.
std::string kind_of(const std::string& device) { return device.substr(0, device.find(':')); }

int64_t threads_by_default(int64_t workers, int64_t cores) { return workers > 1 ? 1 : cores; }

/// Cores that each of so many workers really has.
double cores_of_each(int64_t workers, int64_t threads, int64_t cores) {
  return std::min(static_cast<double>(threads), static_cast<double>(cores) / static_cast<double>(workers));
}

}  // namespace

void require_measured_for(const Profile& profile, const Asked& asked) {
  compare("--task", profile.task, asked.task);
  compare("--model", profile.model, asked.model);
  if (profile.max_length > 0 && asked.max_length > 0 && profile.max_length != asked.max_length)
    refuse("--max-length", std::to_string(profile.max_length), std::to_string(asked.max_length));
  compare("--precision", profile.precision, asked.precision);
  if (kind_of(profile.device) != kind_of(asked.device)) compare("--device", profile.device, asked.device);
  compare("--optimizer", profile.optimizer, asked.optimizer);
}

std::vector<std::string> take_settings(const Profile& profile, spec::RunSpec& spec,
                                       const std::vector<std::string>& given) {
  spec::RunSpec usual;
  const auto is_given = [&](const char* name) {
    return std::find(given.begin(), given.end(), name) != given.end();
  };
  // What --config says is asked for as well, and seen by its not being as usual.
  const bool task = is_given("task.name") || spec.task.name != usual.task.name;
  usual.task.name = spec.task.name;
  usual.complete();
  const bool model = is_given("model.name") || is_given("model.init_from") || !spec.model.init_from.empty() ||
                     spec.model.name != usual.model.name;
  const bool length = spec.task.max_length > 0;
  const bool precision = is_given("compute.precision") || spec.compute.precision != usual.compute.precision;
  const bool device = is_given("compute.device") || spec.compute.device != usual.compute.device;
  const bool optimizer = is_given("optim.name") || spec.optim.name != usual.optim.name;
  const std::string& named = spec.model.init_from.empty() ? spec.model.name : spec.model.init_from;
  Asked asked;
  if (task) asked.task = spec.task.name;
  if (model) asked.model = named;
  if (length) asked.max_length = spec.task.max_length;
  if (precision) asked.precision = spec.compute.precision;
  if (device) asked.device = spec.compute.device;
  if (optimizer) asked.optimizer = spec.optim.name;
  require_measured_for(profile, asked);

  std::vector<std::string> taken;
  const auto take = [&](const char* flag, const std::string& measured, std::string& setting) {
    if (measured.empty() || measured == setting) return;
    setting = measured;
    taken.push_back(fmt::format("{} {}", flag, measured));
  };
  take("--task", profile.task, spec.task.name);
  if (!profile.model.empty() && profile.model != named) {
    spec.model.name = profile.model;
    spec.model.init_from.clear();
    taken.push_back("--model " + profile.model);
  }
  if (profile.max_length > 0 && profile.max_length != spec.max_length()) {
    spec.task.max_length = profile.max_length;
    taken.push_back(fmt::format("--max-length {}", profile.max_length));
  }
  take("--precision", profile.precision, spec.compute.precision);
  if (kind_of(profile.device) != kind_of(spec.compute.device))
    take("--device", profile.device, spec.compute.device);
  take("--optimizer", profile.optimizer, spec.optim.name);
  return taken;
}

double core_factor(const Profile& profile, int64_t workers, int64_t threads) {
  if (profile.cores <= 0 || kind_of(profile.device) != "cpu") return 1;
  if (threads <= 0) threads = threads_by_default(workers, profile.cores);
  return cores_of_each(profile.workers, std::max<int64_t>(1, profile.threads), profile.cores) /
         cores_of_each(workers, threads, profile.cores);
}

std::string core_note(const Profile& profile, int64_t workers, int64_t threads) {
  const auto so_many = [](int64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const std::string measured =
      fmt::format("the profile was measured with {} of {} at once", so_many(profile.workers, "worker"),
                  so_many(profile.threads, "thread"));
  if (profile.cores <= 0) {
    if (profile.workers == workers) return "";
    return fmt::format("{}, on how many cores it does not say: its times are taken as they are", measured);
  }
  const double factor = core_factor(profile, workers, threads);
  if (std::abs(factor - 1) < 1e-9) return "";
  return fmt::format("{} on {}; with {} of {} its times are taken to be {:.3g} times as long", measured,
                     so_many(profile.cores, "core"), so_many(workers, "worker"),
                     so_many(threads > 0 ? threads : threads_by_default(workers, profile.cores), "thread"),
                     factor);
}

}  // namespace syncopate::sim
