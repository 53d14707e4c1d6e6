#include "tests/report/made_sweep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace syncopate::report {

using Json = nlohmann::ordered_json;

void MadeSweep::arm(const std::string& name, const std::string& strategy, int64_t workers,
                    const std::vector<double>& accuracies, double speed) {
  const std::string id = fmt::format("a-{}", name);
  for (size_t i = 0; i < accuracies.size(); ++i) {
    MadeRun run;
    run.arm = id;
    run.name = name;
    run.seed = static_cast<int64_t>(i) + 1;
    record::RunRecord& r = run.record;
    r.task = std::string("supersense");
    r.model = std::string("bert-tiny");
    r.strategy = strategy;
    r.workers = workers;
    r.steps = 100;
    r.examples = 3200;
    r.global_batch = 32;
    // Seeds differ a little in speed, alike in all arms.
    r.examples_per_s = speed * (1 + 0.001 * static_cast<double>(i));
    r.train_seconds = 3200 / r.examples_per_s;
    r.ms_per_iteration = 32e3 / r.examples_per_s;
    r.compute_ms = 0.75 * r.ms_per_iteration;
    r.exchange_ms = workers > 1 ? 0.25 * r.ms_per_iteration : 0;
    r.bytes_sent_per_step = workers > 1 ? 1e6 : 0;
    r.train_loss = 2;
    r.eval.emplace();
    r.eval->step = 100;
    r.eval->loss = 1.5;
    r.eval->examples = 1000;
    r.eval->measures["accuracy"] = accuracies[i];
    r.data_hash = std::string("data");
    r.start_hash = fmt::format("start of seed {}", run.seed);
    r.test_hash = std::string("test");
    r.cpu = std::string("a processor");
    r.cores = 4;
    r.threads = 1;
    r.outside_load = 0.1;
    r.provenance.version = std::string("0.1.0");
    r.provenance.commit = std::string("c1");
    r.provenance.date = std::string("2026-01-02T03:04:05Z");
    r.provenance.host = std::string("host");
    r.provenance.seed = run.seed;
    for (int step = 0; step < 100; ++step) run.losses.push_back(3 - 0.01 * step);
    runs.push_back(std::move(run));
  }
}

std::vector<MadeRun*> MadeSweep::runs_of(const std::string& name) {
  std::vector<MadeRun*> found;
  for (MadeRun& run : runs) {
    if (run.name == name) found.push_back(&run);
  }
  return found;
}

void MadeSweep::write() {
  Json json{{"format", "syncopate-sweep-1"},
            {"title", "a comparison"},
            {"file", "made.toml"},
            {"program", {{"version", "0.1.0"}, {"commit", "c1"}}},
            {"state", "finished"},
            {"baseline", nullptr},
            {"target", nullptr},
            {"differs", Json::array()},
            {"price", nullptr},
            {"link_gbit", nullptr},
            {"axes", Json::array()},
            {"runs", Json::array()},
            {"tuning", Json::array()}};
  for (size_t i = 0; i < runs.size(); ++i) {
    const MadeRun& run = runs[i];
    const std::filesystem::path folder = folder_of(i);
    std::filesystem::create_directories(folder);
    Json spec{{"task.name", run.record.task},
              {"model.name", run.record.model},
              {"strategy.name", run.record.strategy},
              {"codec.name", run.record.codec},
              {"optim.lr", 0.001},
              {"train.seed", run.seed},
              {"comm.workers", run.record.workers}};
    for (const auto& [name, value] : run.settings) spec[name] = value;
    test::write_text(folder / "spec.json", spec.dump(2, ' ', false, Json::error_handler_t::replace));
    std::string steps, evals;
    for (size_t step = 0; step < run.losses.size(); ++step) {
      record::StepRecord record{.step = static_cast<int64_t>(step) + 1, .loss = run.losses[step]};
      record.examples = run.record.global_batch;
      record.ms = run.record.train_seconds * 1e3 / static_cast<double>(run.losses.size());
      record.bytes_sent = run.record.bytes_sent_per_step;
      steps += record::to_json(record).dump() + "\n";
    }
    for (const record::EvalRecord& eval : run.evals) evals += record::to_json(eval).dump() + "\n";
    test::write_text(folder / "steps.jsonl", steps);
    test::write_text(folder / "evals.jsonl", evals);
    if (run.state == "done") {
      test::write_text(folder / "result.json", record::readable(record::to_json(run.record)));
      test::write_text(folder / "DONE", "");
    }
    json["runs"].push_back({{"id", fmt::format("r{}", i)},
                            {"kind", run.kind},
                            {"arm", run.arm},
                            {"row", run.name},
                            {"name", run.name},
                            {"axes", Json::object()},
                            {"seed", run.seed},
                            {"lr", 0.001},
                            {"control_of", run.control_of.empty() ? Json() : Json(run.control_of)},
                            {"folder", folder.filename().string()},
                            {"state", run.state},
                            {"reused", false},
                            {"exit_code", 0},
                            {"message", run.message},
                            {"other_version", run.other_version},
                            {"alone", run.alone}});
  }
  if (sweep.is_object()) json.update(sweep);
  if (planned) test::write_text(folder_ / "sweep.json", json.dump(1));
}

Results MadeSweep::analysed() {
  write();
  return analyse(path());
}

const ArmResult& arm_named(const Results& results, const std::string& name) {
  for (const ArmResult& arm : results.arms) {
    if (arm.name == name) return arm;
  }
  ADD_FAILURE() << "no arm " << name;
  static const ArmResult kNone;
  return kNone;
}

const Check& check_of(const ArmResult& arm, const std::string& code) {
  for (const Check& check : arm.checks) {
    if (check.code == code) return check;
  }
  ADD_FAILURE() << "no check " << code << " of " << arm.name;
  static const Check kNone;
  return kNone;
}

std::string flag_text(const ArmResult& arm, const std::string& code) {
  for (const Flag& flag : arm.flags) {
    if (flag.code == code) return flag.text;
  }
  return "";
}

}  // namespace syncopate::report
