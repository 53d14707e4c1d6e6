#include "syncopate/parallel/rounds.h"

#include <ATen/ATen.h>

#include <cstdlib>

#include "syncopate/base/error.h"

namespace syncopate::parallel {

void Rounds::validate() const {
  if (every < 1) throw ConfigError("strategy.every must be 1 or more, got {}", every);
  if (fragments < 1) throw ConfigError("strategy.fragments must be 1 or more, got {}", fragments);
  if (every % fragments != 0) {
    throw ConfigError(
        "strategy.every must be a multiple of strategy.fragments, so that they take turns evenly; {} is not "
        "one of {}",
        every, fragments);
  }
  if (delay < 0 || delay >= every) {
    throw ConfigError("strategy.delay must be at least 0 and below strategy.every ({}), got {}", every,
                      delay);
  }
}

std::optional<size_t> Rounds::starting(int64_t done) const {
  const int64_t apart = every / fragments;
  if (done < 1 || done % apart != 0) return std::nullopt;
  return static_cast<size_t>((done / apart - 1) % fragments);
}

bool Rounds::under_way(size_t fragment, int64_t done) const {
  for (int64_t started = done; started > done - delay; --started) {
    if (starting(started) == fragment) return true;
  }
  return false;
}

at::Tensor Fragment::of(const at::Tensor& flat) const {
  return flat.defined() ? flat.narrow(0, offset, size) : at::Tensor();
}

std::vector<Fragment> cut(const tensor::FlatParams& params, int64_t fragments) {
  const auto& entries = params.entries();
  const auto count = static_cast<int64_t>(entries.size());
  if (fragments > count) {
    throw ConfigError("strategy.fragments must be at most the model's {} parameter tensors, got {}", count,
                      fragments);
  }
  std::vector<Fragment> cuts;
  int64_t first = 0;  // entry
  for (int64_t i = 0; i < fragments; ++i) {
    const int64_t ideal = params.size() / fragments * (i + 1);
    const int64_t latest = count - (fragments - i - 1);  // leaves one for each of the others
    int64_t last = first + 1;
    const auto edge = [&](int64_t entry) {
      return entry < count ? entries[static_cast<size_t>(entry)].offset : params.size();
    };
    while (last < latest && std::abs(edge(last + 1) - ideal) <= std::abs(edge(last) - ideal)) ++last;
    if (i + 1 == fragments) last = count;
    cuts.push_back({edge(first), edge(last) - edge(first)});
    first = last;
  }
  return cuts;
}

}  // namespace syncopate::parallel
