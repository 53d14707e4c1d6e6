#include "syncopate/optim/optimizer.h"

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/optim/adamw.h"
#include "syncopate/optim/lamb.h"
#include "syncopate/optim/lars.h"
#include "syncopate/optim/sgd.h"

namespace syncopate::optim {
namespace {

void require_range(const char* name, double value, double low, double high) {
  if (!(value >= low && value < high)) {
    throw ConfigError("{} must be at least {} and below {}, got {}", name, low, high, value);
  }
}

using OptimizerPtr = std::unique_ptr<Optimizer>;

template <typename Made>
OptimizerPtr make(const OptimizerOptions& options, const tensor::FlatParams& params) {
  return std::make_unique<Made>(options, params);
}

struct Maker {
  const char* name;
  bool whole_tensors;
  OptimizerPtr (*make)(const OptimizerOptions&, const tensor::FlatParams&);
};

constexpr Maker kMakers[] = {
    {"adamw", false, make<AdamW>},
    {"sgd", false, make<Sgd>},
    {"lamb", true, make<Lamb>},
    {"lars", true, make<Lars>},
};

const Maker& find_maker(const std::string& kind) {
  for (const Maker& maker : kMakers) {
    if (kind == maker.name) return maker;
  }
  throw ConfigError("unknown optimizer \"{}\"{}", kind, suggestion(kind, optimizer_names()));
}

}  // namespace

void Optimizer::step_part(tensor::FlatParams&, double, double, int64_t, int64_t) {
  throw InternalError("this optimizer cannot update a part");
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Maker& maker : kMakers) names.emplace_back(maker.name);
  return names;
}

bool needs_whole_tensors(const std::string& kind) { return find_maker(kind).whole_tensors; }

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, const tensor::FlatParams& params) {
  require_range("weight_decay", options.weight_decay, 0, 1e6);
  require_range("beta1", options.beta1, 0, 1);
  require_range("beta2", options.beta2, 0, 1);
  require_range("momentum", options.momentum, 0, 1);
  if (!(options.eps > 0)) throw ConfigError("eps must be above 0, got {}", options.eps);
  if (!(options.trust > 0) || !std::isfinite(options.trust)) {
    throw ConfigError("trust must be above 0, got {}", options.trust);
  }
  if (options.nesterov && options.kind != "sgd") {
    throw ConfigError("nesterov is for sgd, not for {}; leave it out", options.kind);
  }
  if (options.nesterov && options.momentum == 0) {
    throw ConfigError("nesterov needs a momentum above 0");
  }
  return find_maker(options.kind).make(options, params);
}

}  // namespace syncopate::optim
