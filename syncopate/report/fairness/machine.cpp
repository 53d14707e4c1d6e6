// What an arm ran on.
#include <fmt/format.h>

#include <algorithm>

#include "syncopate/report/fairness/questions.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

std::string about(const record::RunRecord& record) {
  return fmt::format("{}{}, {}", record.cpu.empty() ? "a processor that is not known" : record.cpu,
                     record.cores > 0 ? fmt::format(", {} cores", record.cores) : "", record.device);
}

}  // namespace

bool same_machine(const record::RunRecord& a, const record::RunRecord& b) {
  return (a.cpu.empty() || b.cpu.empty() || a.cpu == b.cpu) &&
         (a.cores == 0 || b.cores == 0 || a.cores == b.cores) && a.device == b.device;
}

bool busy(double outside_load, int64_t cores) {
  // A quarter of a core is what an idle system's own services take; a machine of many cores has more of them.
  return outside_load > std::max(0.25, 0.05 * static_cast<double>(cores));
}

void check_network(ArmChecks& checks) {
  const auto& arms = checks.comparison().results.arms;
  if (std::none_of(arms.begin(), arms.end(), [](const ArmResult& arm) { return !arm.on.name.empty(); }))
    return;
  const size_t at = checks.comparison().speed_base[checks.index()];
  const ArmResult& base = at == Comparison::kNone ? checks.arm() : arms[at];
  const auto where = [](const ArmResult& arm) {
    return arm.on.name.empty() ? std::string("no network") : network_text(arm.on);
  };
  if (checks.arm().on == base.on) {
    checks.add("network", true,
               where(checks.arm()) + (at == checks.index() || checks.alone() ? "" : ", as " + base.name));
  } else if (base.workers == 1) {
    checks.add("network", true, fmt::format("{}; {} needs none", where(checks.arm()), base.name));
  } else {
    std::string text = fmt::format("{}, {} {}: compare speeds within a network", where(checks.arm()),
                                   base.name, where(base));
    checks.flag("other-network", text);
    checks.add("network", true, std::move(text), true);
  }
}

void check_machine(ArmChecks& checks) {
  const auto same_kind = [](const RunPair& pair) { return same_machine(pair.ours(), pair.theirs()); };
  const auto same_host = [](const RunPair& pair) {
    return pair.ours().provenance.host == pair.theirs().provenance.host;
  };
  if (const RunPair* pair = checks.breach(same_kind)) {
    checks.add("machine", false,
               fmt::format("ran on {} ({}), {} on {} ({})", or_nothing(pair->ours().provenance.host),
                           about(pair->ours()), checks.base_name(),
                           or_nothing(pair->theirs().provenance.host), about(pair->theirs())));
  } else if (const RunPair* other = checks.breach(same_host)) {
    // A container has a new name each time: the same processor under another name is a reason for doubt.
    const std::string text =
        fmt::format("ran on {}, {} on {}: the same kind of machine ({}), perhaps not the same one",
                    or_nothing(other->ours().provenance.host), checks.base_name(),
                    or_nothing(other->theirs().provenance.host), about(other->ours()));
    checks.add("machine", true, text, true);
    checks.flag("other-host", text);
  } else {
    const std::string& cpu = checks.pairs()[0].ours().cpu;
    checks.add("machine", true,
               fmt::format("{}{}", or_nothing(checks.pairs()[0].ours().provenance.host),
                           cpu.empty() ? "" : ", " + cpu));
  }
}

void check_threads(ArmChecks& checks) {
  const auto each = [](const RunPair& pair) {
    return pair.ours().threads == 0 || pair.theirs().threads == 0 ||
           pair.ours().threads == pair.theirs().threads;
  };
  const RunPair* pair = checks.breach(each);
  if (pair == nullptr) {
    const int64_t count = checks.pairs()[0].ours().threads;
    const bool known =
        checks.for_all([](const RunPair& p) { return p.ours().threads > 0 && p.theirs().threads > 0; });
    checks.add("threads", true, known ? fmt::format("{} per worker{}", count, checks.as_base()) : kNotKnown,
               false, known);
    return;
  }
  const auto total = [](const record::RunRecord& record) {
    const int64_t all = record.workers * record.threads;
    return record.cores > 0 ? std::min(all, record.cores) : all;
  };
  const auto free_choice = [](const RunData& run) {
    const std::string& threads = run.files->setting("compute.threads");
    return threads == "0" || threads == "auto" || threads.empty();
  };
  std::string text = fmt::format("{} per worker, {} has {}", pair->ours().threads, checks.base_name(),
                                 pair->theirs().threads);
  const bool fair =
      checks.for_all([&](const RunPair& p) { return each(p) || total(p.ours()) == total(p.theirs()); });
  const bool automatic = checks.for_all(
      [&](const RunPair& p) { return each(p) || (free_choice(*p.run) && free_choice(*p.base)); });
  if (fair)
    text += ": as many cores in all";
  else if (automatic)
    text += ": each has what the program chooses by itself";
  checks.add("threads", fair || automatic, std::move(text), fair || automatic);
}

}  // namespace syncopate::report
