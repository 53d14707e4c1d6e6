#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "syncopate/base/rng.h"
#include "syncopate/nn/gpt/gpt.h"

namespace syncopate::nn {

/// How the next token is chosen from the logits.
struct SampleOptions {
  double temperature = 1;  ///< 0 takes the likeliest
  int64_t top_k = 0;       ///< among the k likeliest alone; 0 for all
  double top_p = 1;        ///< among the likeliest that together have this probability; 1 for all
};

/// A token drawn by the logits [V]. Ties go to the smaller number. Throws ConfigError for options that make
/// no sense, DivergedError when no logit is a number.
int64_t sample_next(const at::Tensor& logits_V, const SampleOptions& options, Rng& rng);

/// What of the model is of use: positions beyond those it was trained with and words beyond the vocabulary
/// (tables may be padded) hold nothing learned. 0: all.
struct TrainedPart {
  int64_t positions = 0;
  int64_t words = 0;
};

/// `ids` (at least one) followed by up to `new_tokens` more, each drawn given the last positions before it;
/// ends after `stop` was drawn. Puts the model into evaluation mode. Depends on `seed` alone.
std::vector<int64_t> generate(Gpt& model, std::vector<int64_t> ids, int64_t new_tokens,
                              const SampleOptions& options, uint64_t seed,
                              std::optional<int64_t> stop = std::nullopt, const TrainedPart& trained = {});

}  // namespace syncopate::nn
