#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "syncopate/run/spec.h"

namespace syncopate::run {

/// The folder of one run: spec.json env.json steps.jsonl evals.jsonl loss_<rank>.txt checkpoint.safetensors
/// result.json model/ DONE.
struct RunFolder {
  std::filesystem::path path;

  std::filesystem::path spec() const { return path / "spec.json"; }
  std::filesystem::path environment() const { return path / "env.json"; }
  std::filesystem::path steps() const { return path / "steps.jsonl"; }
  std::filesystem::path evals() const { return path / "evals.jsonl"; }
  std::filesystem::path losses(int rank) const { return path / ("loss_" + std::to_string(rank) + ".txt"); }
  std::filesystem::path result() const { return path / "result.json"; }
  std::filesystem::path model() const { return path / "model"; }
  std::filesystem::path checkpoint() const { return path / "checkpoint.safetensors"; }
  std::filesystem::path done() const { return path / "DONE"; }
};

/// Where a run goes. A new run takes `out`, or a fresh folder under runs/ named after the spec; a folder that
/// holds a run already is refused. A run that resumes takes the folder that holds it and must have the same
/// settings, save those that decide nothing. Throws ConfigError. Makes no folder.
RunFolder choose_folder(RunSpec& spec, const std::string& out, bool resume);

/// Lets `write` fill a model folder; it appears whole or not at all, in the place of one that was there.
void save_model(const std::filesystem::path& folder,
                const std::function<void(const std::filesystem::path&)>& write);

/// Makes the folder and writes spec.json into it.
void start_folder(const RunFolder& folder, RunSpec& spec);

}  // namespace syncopate::run
