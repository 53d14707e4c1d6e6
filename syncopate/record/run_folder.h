#pragma once

#include <filesystem>
#include <string>

namespace syncopate::record {

/// The folder of one run: spec.json env.json steps.jsonl evals.jsonl loss_<rank>.txt checkpoint.safetensors
/// best-<step>.safetensors (train/best_model.h) result.json model/ tensorboard/ network.toml DONE.
struct RunFolder {
  std::filesystem::path path;

  std::filesystem::path spec() const { return path / "spec.json"; }
  std::filesystem::path environment() const { return path / "env.json"; }
  std::filesystem::path steps() const { return path / "steps.jsonl"; }
  std::filesystem::path evals() const { return path / "evals.jsonl"; }
  std::filesystem::path losses(int rank) const { return path / ("loss_" + std::to_string(rank) + ".txt"); }
  std::filesystem::path result() const { return path / "result.json"; }
  std::filesystem::path model() const { return path / "model"; }
  std::filesystem::path tensorboard() const { return path / "tensorboard"; }
  std::filesystem::path checkpoint() const { return path / "checkpoint.safetensors"; }
  std::filesystem::path network() const { return path / "network.toml"; }
  std::filesystem::path done() const { return path / "DONE"; }
};

}  // namespace syncopate::record
