#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/data/dataset.h"
#include "syncopate/data/text_task.h"
#include "syncopate/data/wordpiece.h"
#include "syncopate/nn/bert.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/optim/schedule.h"
#include "syncopate/parallel/strategy.h"
#include "syncopate/run/spec.h"

// The one file that knows the names of all concrete classes: read build.cpp to know what exists.
namespace syncopate::run {

const std::vector<std::string>& strategy_names();
void require_strategy(const std::string& name);  ///< throws ConfigError with a suggestion

std::unique_ptr<parallel::Strategy> make_strategy(const RunSpec::Strategy& spec, comm::Group& group);
std::unique_ptr<optim::Optimizer> make_optimizer(const RunSpec::Optim& spec,
                                                 const tensor::FlatParams& params);
optim::Schedule make_schedule(const RunSpec::Optim& spec, int64_t steps);

/// What a run trains on and what it trains.
struct Materials {
  std::unique_ptr<data::WordPiece> tokenizer;
  std::unique_ptr<nn::BertClassifier> model;
  std::shared_ptr<const data::Dataset> train, test;
  std::vector<std::string> notes;  ///< for the user: a fresh head, tensors left out
};

/// Loads data, vocabulary and model. Collective: where a vocabulary must be built, rank 0 builds it for all.
Materials make_materials(const RunSpec& spec, comm::Group& group);

/// A model folder and data to score it on; `max_length` 0: what the model was trained with.
struct Scoring {
  std::unique_ptr<data::WordPiece> tokenizer;
  std::unique_ptr<nn::BertClassifier> model;
  std::shared_ptr<const data::Dataset> test;
  std::vector<std::string> labels;
};
Scoring make_scoring(const std::string& task, const std::string& data, const std::string& model_folder,
                     int64_t max_length, data::Purpose purpose);

/// Writes a Hugging Face folder, whole or not at all.
void save_model(const std::filesystem::path& folder, const nn::BertClassifier& model,
                const data::WordPiece& tokenizer, int64_t max_length);

}  // namespace syncopate::run
