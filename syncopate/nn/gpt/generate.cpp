#include "syncopate/nn/gpt/generate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "syncopate/base/error.h"

namespace syncopate::nn {
namespace {

void validate(const SampleOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature)) {
    throw ConfigError("the temperature must be 0 or more, got {}", options.temperature);
  }
  if (options.top_k < 0) throw ConfigError("top-k must be 0 (all) or more, got {}", options.top_k);
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    throw ConfigError("top-p must be above 0 and at most 1, got {}", options.top_p);
  }
}

}  // namespace

int64_t sample_next(const at::Tensor& logits_V, const SampleOptions& options, Rng& rng) {
  validate(options);
  const at::Tensor logits = logits_V.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* const scores = logits.data_ptr<double>();
  std::vector<int64_t> order(static_cast<size_t>(logits.numel()));
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int64_t id) { return std::isnan(scores[id]); });
  const auto likelier = [&](int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  if (order.empty()) throw DivergedError("the model gives no numbers as logits; use another checkpoint");
  if (options.temperature == 0) return *std::min_element(order.begin(), order.end(), likelier);

  std::sort(order.begin(), order.end(), likelier);
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(order.size())) {
    order.resize(static_cast<size_t>(options.top_k));
  }
  std::vector<double> weights;
  double total = 0;
  for (const int64_t id : order) {
    weights.push_back(std::exp((scores[id] - scores[order[0]]) / options.temperature));
    total += weights.back();
  }
  if (options.top_p < 1) {
    double kept = 0;
    size_t count = 0;
    while (count < weights.size() && kept < options.top_p * total) kept += weights[count++];
    weights.resize(count);
    total = kept;
  }
  double left = rng.uniform() * total;
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[weights.size() - 1];
}

std::vector<int64_t> generate(Gpt& model, std::vector<int64_t> ids, int64_t new_tokens,
                              const SampleOptions& options, uint64_t seed, std::optional<int64_t> stop,
                              const TrainedPart& trained) {
  validate(options);
  if (ids.empty()) throw ConfigError("there is nothing to continue; give at least one token");
  const at::NoGradGuard no_grad;
  model.set_mode({});
  Rng rng(seed);
  const int64_t positions = model.config().max_positions, words = model.config().vocab_size;
  const auto window =
      static_cast<size_t>(trained.positions > 0 ? std::min(trained.positions, positions) : positions);
  const int64_t known = trained.words > 0 ? std::min(trained.words, words) : words;
  const at::Device device = model.parameters().front().tensor.device();
  for (int64_t made = 0; made < new_tokens; ++made) {
    const size_t length = std::min(window, ids.size());
    Batch batch;
    batch.fields["input_ids"] =
        at::tensor(at::ArrayRef<int64_t>(ids.data() + ids.size() - length, length), at::kLong)
            .unsqueeze(0)
            .to(device);
    batch.ids = {0};
    // The head is by far the widest layer: only the last position goes through it.
    const at::Tensor hidden_BLD = model.forward({}, batch, {0, model.depth() - 1});
    const at::Tensor last_B1D = hidden_BLD.narrow(1, hidden_BLD.size(1) - 1, 1);
    const at::Tensor logits = model.forward(last_B1D, batch, {model.depth() - 1, model.depth()});
    ids.push_back(sample_next(logits[0][0].narrow(0, 0, known), options, rng));
    if (stop && ids.back() == *stop) break;
  }
  return ids;
}

}  // namespace syncopate::nn
