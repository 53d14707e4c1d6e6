#include "syncopate/report/advice/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/report/advice/paragraph.h"
#include "syncopate/report/advice/verdict.h"
#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/reading/attachments.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

/// Of a group in which there is nothing to compare.
Advice advice_of_too_few(const ArmGroup& group) {
  Advice advice{.verdict = "nothing"};
  const Arms& compared = group.compared();
  if (compared.empty()) {
    const bool going = std::any_of(group.all().begin(), group.all().end(), [](const ArmResult* arm) {
      return arm->state == "running" || arm->state == "planned";
    });
    advice.sentence = going ? "No run has finished yet." : "No run finished that could be compared.";
  } else if (group.base() == nullptr) {
    advice.sentence = "There is no baseline that finished and passed its checks, so nothing can be said.";
  } else {
    advice.sentence =
        fmt::format("Only {} has finished and passed its checks: there is nothing to compare it with.",
                    compared[0]->name);
  }
  advice.paragraph = caveats_of(group);
  return advice;
}

Advice advice_of(const ArmGroup& group) {
  if (!group.comparable()) return advice_of_too_few(group);
  const Claims claims(group);
  Advice advice = verdict_of(claims);
  advice.paragraph = paragraph_of(claims, advice);
  return advice;
}

Arms measured_in(const Results& results, int64_t group) {
  Arms found;
  for (const ArmResult& arm : results.arms) {
    if (arm.group == group && !arm.simulated) found.push_back(&arm);
  }
  return found;
}

/// What to do on each of several networks: which of them one has is no choice.
Advice by_network(const Results& results, const RunsById& runs, int64_t group,
                  const std::vector<NetworkName>& networks) {
  Advice all;
  std::vector<std::string> answers;
  for (const NetworkName& network : networks) {
    const Advice one = advice_of(ArmGroup(results, runs, group, &network));
    const std::string where = network_text(network);
    const ArmResult* arm = results.arm(one.arm);
    if (one.verdict == "best" && arm != nullptr) {
      answers.push_back(fmt::format("{} on {} ({})", arm->name, where, times_text(arm->speedup.mean)));
    } else if (one.verdict == "none") {
      answers.push_back(fmt::format("one worker rather than {}", where));
    } else {
      answers.push_back(fmt::format("undecided on {}", where));
    }
    if (all.verdict == "nothing" || (all.verdict != "best" && one.verdict == "best")) {
      all.verdict = one.verdict;
      all.arm = one.arm;
    }
    all.rivals.insert(all.rivals.end(), one.rivals.begin(), one.rivals.end());
    if (one.arm != all.arm && !one.arm.empty()) all.rivals.push_back(one.arm);
    all.paragraph +=
        fmt::format("{}On {}: {} {}", all.paragraph.empty() ? "" : " ", where, one.sentence, one.paragraph);
  }
  all.sentence = fmt::format("It depends on the network: {}.", joined(answers, "and"));
  return all;
}

Advice advice_of(const Results& results, const RunsById& runs, int64_t group) {
  const std::vector<NetworkName> networks = networks_in(measured_in(results, group));
  return networks.size() > 1 ? by_network(results, runs, group, networks)
                             : advice_of(ArmGroup(results, runs, group, nullptr));
}

/// Whether there are arms that did not fail, and nobody trained any of them.
bool all_simulated(const Results& results) {
  const auto failed = [](const ArmResult& arm) { return arm.state == "failed"; };
  return !std::all_of(results.arms.begin(), results.arms.end(), failed) &&
         std::all_of(results.arms.begin(), results.arms.end(),
                     [&](const ArmResult& arm) { return failed(arm) || arm.simulated; });
}

/// Of a folder in which nothing was trained: what a simulation says about speed, and no more.
Advice advice_of_simulations(const Results& results) {
  Advice advice{.verdict = "nothing"};
  const ArmResult* fastest = nullptr;
  for (const ArmResult& arm : results.arms) {
    if (arm.speedup.known() && (fastest == nullptr || arm.speedup.mean > fastest->speedup.mean))
      fastest = &arm;
  }
  advice.sentence = "All of these are simulated: nothing was trained, so they say nothing about quality.";
  if (fastest == nullptr || results.arms.size() < 2) return advice;
  const ArmResult* base = results.arm(fastest->speed_against);
  if (fastest == base) {
    advice.sentence += fmt::format(" By the simulation {} is the fastest.", fastest->name);
  } else {
    advice.sentence +=
        fmt::format(" By the simulation {} is the fastest: {}.", fastest->name, fastest->words);
  }
  return advice;
}

/// Of a folder without runs.
Advice advice_of_predictions(const Results& results) {
  Advice advice{.verdict = "nothing"};
  std::vector<std::string> sentences;
  if (results.advice_check) sentences.push_back(advice_sentence(results));
  for (const Attachment& placement : results.placements) sentences.push_back(placement_sentence(placement));
  for (size_t i = 0; i < sentences.size(); ++i) {
    std::string& into = i == 0 ? advice.sentence : advice.paragraph;
    into += (into.empty() ? "" : " ") + sentences[i];
    if (i == kMostTold) break;
  }
  return advice;
}

}  // namespace

Advice advise(const Results& results) {
  if (results.runs.empty() && (results.advice_check || !results.placements.empty()))
    return advice_of_predictions(results);
  if (all_simulated(results)) return advice_of_simulations(results);
  int64_t groups = 1;
  for (const ArmResult& arm : results.arms) {
    if (!arm.simulated) groups = std::max(groups, arm.group + 1);
  }
  RunsById runs;
  for (const RunResult& run : results.runs) runs.emplace(run.id, &run);
  Advice first = advice_of(results, runs, 0);
  for (int64_t group = 1; group < groups; ++group) {
    if (measured_in(results, group).empty()) continue;
    const Advice other = advice_of(results, runs, group);
    first.paragraph += fmt::format("{}Problem {}: {} {}", first.paragraph.empty() ? "" : " ", group + 1,
                                   other.sentence, other.paragraph);
  }
  return first;
}

}  // namespace syncopate::report
