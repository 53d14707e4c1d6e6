#include "syncopate/parallel/strategies/rounds.h"

#include "syncopate/base/error.h"

namespace syncopate::parallel {

void Rounds::validate() const {
  if (every < 1) throw ConfigError("every must be 1 or more, got {}", every);
  if (fragments < 1) throw ConfigError("fragments must be 1 or more, got {}", fragments);
  if (every % fragments != 0) {
    throw ConfigError(
        "every must be a multiple of fragments, so that they take turns evenly: {} is not a multiple of {}",
        every, fragments);
  }
  if (delay < 0 || delay >= every) {
    throw ConfigError("delay must be at least 0 and below every ({}), got {}", every, delay);
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

std::vector<Slice> fragments_of(const tensor::FlatParams& params, int64_t fragments) {
  const auto tensors = static_cast<int64_t>(params.entries().size());
  if (fragments > tensors) {
    throw ConfigError("fragments must be at most the model's {} parameter tensors, got {}", tensors,
                      fragments);
  }
  return split_between_tensors(params.entries(), params.size(), fragments);
}

}  // namespace syncopate::parallel
