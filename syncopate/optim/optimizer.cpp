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

}  // namespace

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names{"adamw", "sgd", "lamb", "lars"};
  return names;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, const tensor::FlatParams& params) {
  require_range("optim.weight_decay", options.weight_decay, 0, 1e6);
  require_range("optim.beta1", options.beta1, 0, 1);
  require_range("optim.beta2", options.beta2, 0, 1);
  require_range("optim.momentum", options.momentum, 0, 1);
  if (!(options.eps > 0)) throw ConfigError("optim.eps must be above 0, got {}", options.eps);
  if (!(options.trust > 0) || !std::isfinite(options.trust)) {
    throw ConfigError("optim.trust must be above 0, got {}", options.trust);
  }
  if (options.nesterov && options.kind != "sgd") {
    throw ConfigError("optim.nesterov is for sgd, not for {}; leave it out", options.kind);
  }
  if (options.nesterov && options.momentum == 0) {
    throw ConfigError("optim.nesterov needs a momentum above 0; set optim.momentum");
  }
  if (options.kind == "adamw") return std::make_unique<AdamW>(options, params);
  if (options.kind == "sgd") return std::make_unique<Sgd>(options, params);
  if (options.kind == "lamb") return std::make_unique<Lamb>(options, params);
  if (options.kind == "lars") return std::make_unique<Lars>(options, params);
  throw ConfigError("unknown optimizer \"{}\"{}", options.kind, suggestion(options.kind, optimizer_names()));
}

}  // namespace syncopate::optim
