#include "syncopate/parallel/pipeline/schedule.h"

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::parallel {

Schedule parse_schedule(const std::string& name) {
  if (name == "1f1b") return Schedule::k1F1B;
  if (name == "gpipe") return Schedule::kGPipe;
  throw ConfigError("unknown schedule \"{}\"{}", name, suggestion(name, {"1f1b", "gpipe"}));
}

std::vector<Pass> passes_of(Schedule schedule, int stage, int stages, int64_t micro_batches) {
  // What a stage runs ahead: its first gradient comes back when the stages behind it had their turn.
  const int64_t ahead =
      schedule == Schedule::kGPipe ? micro_batches : std::min<int64_t>(micro_batches, stages - stage - 1);
  std::vector<Pass> passes;
  for (int64_t micro = 0; micro < ahead; ++micro) passes.push_back({.backward = false, .micro = micro});
  for (int64_t micro = ahead; micro < micro_batches; ++micro) {
    passes.push_back({.backward = false, .micro = micro});
    passes.push_back({.backward = true, .micro = micro - ahead});
  }
  for (int64_t micro = micro_batches - ahead; micro < micro_batches; ++micro)
    passes.push_back({.backward = true, .micro = micro});
  return passes;
}

}  // namespace syncopate::parallel
