#include "syncopate/record/record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/record/records.h"

namespace syncopate::record {
namespace {

using Json = nlohmann::ordered_json;

/// Through the text of a file and back.
Json as_text(const Json& json) { return Json::parse(json.dump()); }

/// Every field counts: another value in any one of them gives another record.
template <typename Record, typename Read>
void expect_round_trip(const Record& record, const Read& read) {
  const Json json = as_text(to_json(record));
  EXPECT_EQ(read(json), record) << json.dump();
  for (const auto& item : json.items()) {
    const std::string& name = item.key();
    const Json& value = item.value();
    Json other = json;
    if (value.is_number()) {
      other[name] = value.get<double>() + 1;
    } else if (value.is_boolean()) {
      other[name] = !value.get<bool>();
    } else if (value.is_string()) {
      other[name] = value.get<std::string>() + "x";
    } else if (value.is_array()) {
      other[name].erase(0);
    } else {
      other[name] = nullptr;
    }
    EXPECT_FALSE(read(other) == record) << name;
  }
}

TEST(StepRecord, ComesBackFromJson) { expect_round_trip(some_step(), step_from_json); }
TEST(EvalRecord, ComesBackFromJson) { expect_round_trip(some_eval(), eval_from_json); }
TEST(EpochRecord, ComesBackFromJson) { expect_round_trip(some_epoch(), epoch_from_json); }
TEST(RunRecord, ComesBackFromJson) { expect_round_trip(as_written(some_run()), run_from_json); }

TEST(StageRecord, ComesBackFromJson) { expect_round_trip(some_stage(), stage_from_json); }
TEST(PipelineRecord, ComesBackFromJson) { expect_round_trip(some_pipeline(), pipeline_from_json); }

TEST(RunRecord, ComesBackFromJsonWithItsStages) {
  RunRecord run = as_written(some_run());
  EXPECT_FALSE(to_json(run).contains("pipeline") || to_json(run).contains("stages"));
  run.pipeline = some_pipeline();
  run.stages = {some_stage(), some_stage()};
  run.stages[0].blocks = 3;
  expect_round_trip(run, run_from_json);
  // The last stage sends nothing forwards.
  run.stages[1].bits_forward = kNan;
  EXPECT_TRUE(std::isnan(run_from_json(as_text(to_json(run))).stages[1].bits_forward));
}

TEST(RunRecord, HoldsOneMatrixARowALine) {
  RunRecord run = some_run();
  run.epochs.push_back(run.epochs.front());
  const std::string text = readable(to_json(run));
  size_t found = 0;
  for (size_t at = text.find("confusion"); at != std::string::npos; at = text.find("confusion", at + 1))
    ++found;
  EXPECT_EQ(found, 1u) << text;
  EXPECT_NE(text.find("\"confusion\": [\n      [9,1],\n      [2,8]\n    ]"), std::string::npos) << text;
  EXPECT_EQ(Json::parse(text), to_json(run)) << "nothing but white space";
  EXPECT_NE(text, to_json(run).dump(2) + "\n");
  EXPECT_EQ(readable(Json::object()), "{}\n");
}

TEST(RunRecord, HasEveryFieldThatTheFormatNames) {
  const Json json = to_json(some_run());
  for (const char* name : {"task",
                           "model",
                           "strategy",
                           "codec",
                           "workers",
                           "init_from",
                           "device",
                           "precision",
                           "skipped_steps",
                           "ended",
                           "shares",
                           "steps",
                           "examples",
                           "ms_per_iteration",
                           "compute_ms",
                           "exchange_ms",
                           "data_ms",
                           "examples_per_s",
                           "train_loss",
                           "train_seconds",
                           "bytes_sent_per_step",
                           "epochs",
                           "eval",
                           "run_dir",
                           "data_hash",
                           "start_hash",
                           "provenance",
                           "updates",
                           "staleness",
                           "validation",
                           "keep",
                           "kept_step",
                           "global_batch",
                           "ms_p50",
                           "ms_p95",
                           "forward_ms",
                           "backward_ms",
                           "optimizer_ms",
                           "hidden_ms",
                           "bytes_by_kind",
                           "collectives",
                           "test_hash",
                           "cpu",
                           "cores",
                           "threads",
                           "outside_load",
                           "peak_memory",
                           "noise_scale",
                           "worker_evals"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  EXPECT_EQ(json.size(), 49u) << "a new field belongs into docs/formats/run-folder.md, and here";
}

TEST(RunRecord, LeavesOutWhatARunDoesNotHave) {
  RunRecord run = as_written(some_run());
  run.updates.clear();
  run.staleness.clear();
  run.shares.clear();
  run.eval.reset();
  const Json json = to_json(run);
  for (const char* name : {"updates", "staleness", "shares"}) EXPECT_FALSE(json.contains(name)) << name;
  EXPECT_TRUE(json.at("eval").is_null());
  EXPECT_EQ(run_from_json(json), run);
}

TEST(RunRecord, ReadsThoseOfOlderVersions) {
  Json json = to_json(some_run());
  for (const char* name : {"codec",        "init_from", "device",       "precision",     "skipped_steps",
                           "ended",        "data_ms",   "data_hash",    "start_hash",    "provenance",
                           "global_batch", "ms_p50",    "hidden_ms",    "bytes_by_kind", "collectives",
                           "test_hash",    "cpu",       "outside_load", "noise_scale",   "worker_evals"})
    json.erase(name);
  const RunRecord run = run_from_json(json);
  EXPECT_EQ(run.codec, "none");
  EXPECT_EQ(run.data_hash + run.start_hash, "");
  EXPECT_EQ(run.init_from, "");
  EXPECT_EQ(run.device, "cpu");
  EXPECT_EQ(run.precision, "fp32");
  EXPECT_EQ(run.skipped_steps, 0);
  EXPECT_EQ(run.ended, "steps");
  EXPECT_EQ(run.data_ms, 0);
  EXPECT_EQ(run.hidden_ms, 0);
  EXPECT_TRUE(std::isnan(run.outside_load) && std::isnan(run.noise_scale)) << "not known";
  EXPECT_TRUE(run.collectives.empty());
  EXPECT_EQ(run.train_loss, some_run().train_loss);
}

TEST(EvalRecord, KeepsMeasuresApartFromItsOwnFields) {
  EvalRecord eval;
  eval.measures["perplexity"] = 12.5;
  const Json json = to_json(eval);
  EXPECT_EQ(json.at("perplexity"), 12.5);
  EXPECT_FALSE(json.contains("model"));
  EXPECT_FALSE(json.contains("confusion"));
  EXPECT_EQ(eval_from_json(json).measures, (std::map<std::string, double>{{"perplexity", 12.5}}));
}

TEST(Records, ReadALossThatIsNoNumberAsNan) {
  StepRecord step = some_step();
  step.loss = kNan;
  const Json json = as_text(to_json(step));
  EXPECT_TRUE(json.at("loss").is_null()) << "JSON has no NaN";
  EXPECT_TRUE(std::isnan(step_from_json(json).loss));
  EXPECT_EQ(step_from_json(json).lr, step.lr);
  EvalRecord eval = some_eval();
  eval.loss = kNan;
  eval.measures["perplexity"] = std::numeric_limits<double>::infinity();
  const EvalRecord back = eval_from_json(as_text(to_json(eval)));
  EXPECT_TRUE(std::isnan(back.loss));
  EXPECT_TRUE(std::isnan(back.measures.at("perplexity")));
  EXPECT_EQ(back.measures.at("accuracy"), 0.85);
}

TEST(Records, RejectMissingFieldsAndOtherTypes) {
  for (const char* name : {"step", "loss", "lr", "examples", "ms", "bytes_sent"}) {
    Json json = to_json(some_step());
    json[name] = "three";
    EXPECT_THROW(step_from_json(json), nlohmann::json::exception) << name;
    json.erase(name);
    EXPECT_THROW(step_from_json(json), nlohmann::json::exception) << name;
  }
  for (const char* name : {"step", "loss", "examples", "seconds"}) {
    Json json = to_json(some_eval());
    json.erase(name);
    EXPECT_THROW(eval_from_json(json), nlohmann::json::exception) << name;
  }
  EXPECT_THROW(step_from_json(Json::array()), nlohmann::json::exception);
  EXPECT_THROW(run_from_json(Json::object()), nlohmann::json::exception);
}

TEST(Measures, AreShownAsPeopleReadThem) {
  EXPECT_EQ(measure_for_people("accuracy", 0.50254), "50.25 %");
  EXPECT_EQ(measure_for_people("macro_f1", 1), "100.00 %");
  EXPECT_EQ(measure_for_people("token_accuracy", 0), "0.00 %");
  EXPECT_EQ(measure_for_people("f1", 81.256), "81.26") << "per cent already";
  EXPECT_EQ(measure_for_people("exact_match", 100), "100.00");
  EXPECT_EQ(measure_for_people("perplexity", 12.3456), "12.35");
}

TEST(Measures, TheMainOneIsWhatATaskIsJudgedBy) {
  const auto main_of = [](const std::map<std::string, double>& measures) {
    EvalRecord eval;
    eval.measures = measures;
    return main_measure(eval);
  };
  EXPECT_EQ(main_of({{"accuracy", 0.5}, {"macro_f1", 0.4}, {"top5", 0.9}}), "accuracy");
  EXPECT_EQ(main_of({{"exact_match", 50}, {"f1", 60}}), "f1");
  EXPECT_EQ(main_of({{"perplexity", 9}, {"token_accuracy", 0.3}}), "perplexity");
  EXPECT_EQ(main_of({{"novel", 1}, {"older", 2}}), "novel");
  EXPECT_EQ(main_of({}), "");
}

}  // namespace
}  // namespace syncopate::record
