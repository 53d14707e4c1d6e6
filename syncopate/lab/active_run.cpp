#include "syncopate/lab/active_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/lab/sweep.h"

namespace syncopate::lab {

void ActiveRun::listen() {
  const auto steps = process->steps();
  if (!steps || steps->done == last.done) return;
  last = *steps;
  last_at = clock.seconds();
  if (first.of > 0) return;
  first = last;
  first_at = last_at;
}

std::string ActiveRun::progress() const {
  return last.of > 0 ? fmt::format(", step {}/{}", last.done, last.of) : "";
}

std::optional<double> ActiveRun::seconds_left() const {
  if (last.done <= first.done) return std::nullopt;
  const double each = (last_at - first_at) / static_cast<double>(last.done - first.done);
  return std::max(0.0, static_cast<double>(last.of - last.done) * each - (clock.seconds() - last_at));
}

int64_t cores_for(const spec::RunSpec& spec, int64_t all) {
  const int64_t processes = spec.comm.workers + spec.servers();
  return processes * (spec.compute.threads > 0 ? spec.compute.threads : processes > 1 ? 1 : all);
}

Place place_for(const spec::RunSpec& spec, bool timed, int jobs, const std::vector<int>& cores,
                const std::vector<ActiveRun>& active) {
  Place place{.need = static_cast<size_t>(cores_for(spec, static_cast<int64_t>(cores.size())))};
  if (jobs <= 1) {
    place.free = active.empty();
    return place;
  }
  std::vector<int> left = cores;
  bool all_pinned = true;
  for (const ActiveRun& each : active) {
    all_pinned = all_pinned && !each.cores.empty();
    std::erase_if(left, [&](int core) {
      return std::find(each.cores.begin(), each.cores.end(), core) != each.cores.end();
    });
  }
  place.shares = 2 * place.need <= cores.size() && spec.compute.device == "cpu";
  const bool pinned = all_pinned && place.need <= left.size();
  const bool whole_machine = timed && !place.shares;
  if (pinned && !whole_machine)
    place.cores.assign(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(place.need));
  place.free =
      active.size() < static_cast<size_t>(jobs) && (!timed || active.empty() || (place.shares && pinned));
  return place;
}

}  // namespace syncopate::lab
