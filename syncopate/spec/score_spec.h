#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "syncopate/spec/run_spec.h"

namespace syncopate::spec {

/// How a language model continues a text.
struct ContinueSpec {
  int64_t tokens = 50;
  double temperature = 1;  ///< 0: always the likeliest word
  int64_t top_k = 0;       ///< choose among so many; 0: all
  double top_p = 1;        ///< choose among the likeliest that have this probability together
  int64_t seed = 0;
};

/// What `evaluate` and `predict` are asked for.
struct ScoreSpec {
  std::string task, data, model;
  bool held_out = false;  ///< evaluate: the data are those of training; of one file, what that held out
  ColumnSpec columns;
  std::vector<std::string> prompts;  ///< texts to classify, fill in or continue, instead of a data file
  std::vector<std::string> pairs;    ///< classes of pairs: each prompt's second text
  int64_t max_length = 0;            ///< 0: what the model was trained with
  int64_t batch_size = 0;            ///< 0: as suits the task
  int64_t threads = 0;               ///< 0: all cores
  int64_t stages = 1;                ///< the model is cut into, each in a process of its own
  std::string device = "cpu", precision = "fp32";
  int64_t stride = 128;            ///< squad: pieces that two windows share
  std::string documents = "auto";  ///< mlm, clm
  bool may_be_empty = false;       ///< squad: answers may be empty though no question is marked so
  bool whole_words = false;        ///< mlm
  double mask_rate = 0.15;         ///< mlm
  int64_t seed = 0;                ///< mlm: of the masks
  int64_t best = 5;                ///< mlm, images: how many answers to show
  ContinueSpec continuation;
  std::function<void(const std::string&)> note;  ///< told what was skipped; may be empty
};

}  // namespace syncopate::spec
