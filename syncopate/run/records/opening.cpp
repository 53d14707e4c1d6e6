#include "syncopate/run/records/opening.h"

#include <fmt/format.h>

#include "syncopate/base/text.h"
#include "syncopate/comm/open.h"

namespace syncopate::run {
namespace {

/// How workers exchange, behind their number; nothing where one is alone.
std::string over(const std::string& backend) {
  if (backend == "none") return "";
  if (backend == "shm") return " over shared memory";
  if (backend == "shm+gloo") return " over shared memory within hosts and gloo between them";
  if (backend == comm::kOneGpuBackend) return " within the memory of one GPU";
  return " over " + backend;
}

}  // namespace

std::vector<std::string> lines_of(const Opening& opening) {
  const spec::RunSpec& spec = opening.spec;
  const tasks::TaskSetup& setup = opening.setup;
  const int64_t workers = spec.comm.workers;
  const bool free = spec.runs_free(),
             by_itself = opening.launcher == "none" || opening.launcher == "syncopate";
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "{} · {} ({:.1f} million parameters, {}) · {} · {} worker{}{}{}", spec.task.name,
      spec.model.init_from.empty() ? spec.model.name : "from " + spec.model.init_from,
      static_cast<double>(opening.parameters) / 1e6, setup.input, spec.strategy.name, workers,
      workers == 1 ? "" : "s", by_itself ? "" : " by " + opening.launcher, over(opening.backend)));
  lines.push_back(fmt::format(
      "{} training{} and {} test examples · {} per {} · {} {}s · into {}", setup.train->size(),
      setup.validation ? fmt::format(", {} validation", setup.validation->size()) : "", setup.test->size(),
      spec.examples_per_step() / (free ? workers : 1), free ? "update" : "step", opening.steps,
      free ? "update" : "step", opening.folder.string()));
  if (!opening.cut.empty()) {
    lines.push_back(
        fmt::format("pipeline: {} stages ({} blocks) x {} replica{}, {} micro-batches, schedule {}{}",
                    spec.pipeline.stages, opening.cut, spec.replicas(), spec.replicas() == 1 ? "" : "s",
                    spec.micro_batches(), spec.pipeline.schedule,
                    spec.activation.codec == "none" ? "" : ", activations by " + spec.activation.codec));
  }
  lines.push_back("watch: syncopate watch " + shell_word(opening.folder.string()));
  return lines;
}

}  // namespace syncopate::run
