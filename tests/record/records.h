#pragma once

#include "syncopate/record/record.h"

namespace syncopate::record {

/// Records in which every field has a value of its own, none of them the default.
inline StepRecord some_step(int64_t step = 7) {
  return {.step = step,
          .loss = 0.1 + 0.2,
          .lr = 1e-3 / 3,
          .examples = 10,
          .ms = 41.5,
          .compute_ms = 30.25,
          .exchange_ms = 8.125,
          .data_ms = 2.75,
          .bytes_sent = 123456789,
          .grad_norm = 1.0 / 7};
}

inline EvalRecord some_eval(int64_t step = 7) {
  return {.step = step,
          .model = "average of the workers",
          .split = "test",
          .loss = 2.0 / 3,
          .examples = 20,
          .seconds = 1.5,
          .measures = {{"accuracy", 0.85}, {"macro_f1", 0.8123456789012345}},
          .confusion = {{9, 1}, {2, 8}}};
}

inline EpochRecord some_epoch() { return {.epoch = 2, .seconds = 3.25, .loss = 0.625, .eval = some_eval()}; }

inline RunRecord some_run() {
  RunRecord run;
  run.task = "sst2";
  run.model = "bert-tiny";
  run.strategy = "hogwild";
  run.codec = "int8";
  run.init_from = "runs/before";
  run.device = "cuda:0";
  run.precision = "fp16";
  run.skipped_steps = 3;
  run.workers = 2;
  run.steps = 84;
  run.examples = 768;
  run.global_batch = 16;
  run.ms_per_iteration = 41.5;
  run.ms_p50 = 40.5;
  run.ms_p95 = 60.75;
  run.compute_ms = 30.25;
  run.exchange_ms = 8.125;
  run.data_ms = 2.75;
  run.forward_ms = 10.5;
  run.backward_ms = 18.25;
  run.optimizer_ms = 1.5;
  run.hidden_ms = 4.25;
  run.examples_per_s = 240.9638554216867;
  run.updates = {40, 44};
  run.staleness = {{39, 1}, {40, 3, 1}};
  run.bytes_sent_per_step = 4567.5;
  run.bytes_by_kind = {{"gradients", 4500}, {"control", 67.5}};
  run.collectives = {{.name = "all_reduce", .calls = 2.5, .bytes = 9000, .seconds = 0.0125}};
  run.train_loss = 0.1 + 0.2;
  run.train_seconds = 3.5;
  run.shares = {6, 4};
  run.ended = "plateau";
  run.epochs = {some_epoch(), {.epoch = 3, .seconds = 3, .loss = 0.5, .eval = std::nullopt}};
  run.eval = run.validation = some_eval(60);
  run.validation->split = "validation";
  run.keep = "best";
  run.kept_step = 60;
  run.run_dir = "runs/this one";
  run.data_hash = "0123456789abcdef";
  run.start_hash = "fedcba9876543210";
  run.test_hash = "00ff00ff00ff00ff";
  run.cpu = "A CPU";
  run.cores = 8;
  run.threads = 4;
  run.outside_load = 0.125;
  run.peak_memory = 123456789;
  run.noise_scale = 250.5;
  run.worker_evals = {some_eval(84), some_eval(84)};
  run.provenance = {.version = "1.2.3",
                    .commit = "abc",
                    .date = "2026-01-02T03:04:05Z",
                    .host = "node7",
                    .command = "syncopate train",
                    .seed = 5,
                    .lr = 1e-3};
  return run;
}

/// The second of two stages.
inline StageRecord some_stage() {
  return {.ranks = {1, 3},
          .blocks = 2,
          .ms = 50,
          .forward_ms = 8.5,
          .backward_ms = 16.25,
          .coding_ms = 1.75,
          .waiting_forward_ms = 7.125,
          .waiting_backward_ms = 0.5,
          .sending_ms = 0.25,
          .exchange_ms = 9.75,
          .optimizer_ms = 2.5,
          .data_ms = 0.125,
          .other_ms = 3.25,
          .bubble = 0.42,
          .bytes_forward = 1024,
          .bytes_backward = 4096,
          .bytes_gradients = 65536,
          .bytes_tied = 512,
          .bits_forward = 4.25,
          .bits_backward = 8.5,
          .error_forward = 0.0625,
          .error_backward = 0.03125};
}

inline PipelineRecord some_pipeline() {
  return {.replicas = 2,
          .schedule = "gpipe",
          .micro_batches = 8,
          .cut = "3,2",
          .activation_codec = "ac-sgd",
          .coded_evaluations = true};
}

/// What result.json keeps of it: the last evaluation's matrix alone.
inline RunRecord as_written(RunRecord run) {
  for (EpochRecord& epoch : run.epochs) {
    if (epoch.eval) epoch.eval->confusion.clear();
  }
  if (run.validation) run.validation->confusion.clear();
  for (EvalRecord& each : run.worker_evals) each.confusion.clear();
  return run;
}

}  // namespace syncopate::record
