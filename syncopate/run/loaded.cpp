#include "syncopate/run/loaded.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "syncopate/base/hash.h"
#include "syncopate/nn/fingerprint.h"

namespace syncopate::run {
namespace {

std::string in_words(const data::Dataset& set) {
  return fmt::format("{} examples with hash {}", set.size(), hexadecimal(set.fingerprint()));
}

}  // namespace

std::string hash_of(const tasks::TaskSetup& setup) {
  std::vector<uint64_t> parts{setup.train->fingerprint(), setup.test->fingerprint()};
  if (setup.validation) parts.push_back(setup.validation->fingerprint());
  return hexadecimal(checksum_of(parts));
}

std::string in_words(const tasks::TaskSetup& setup) {
  return fmt::format(
      "training data of {}\nvalidation data of {}\ntest data of {}\na vocabulary with hash {}\na model to "
      "start from with hash "
      "{}\n",
      in_words(*setup.train), setup.validation ? in_words(*setup.validation) : "none", in_words(*setup.test),
      setup.fingerprint.empty() ? "none" : setup.fingerprint, nn::fingerprint(*setup.model));
}

nlohmann::ordered_json inputs_of(const tasks::TaskSetup& setup, const std::string& hash) {
  nlohmann::ordered_json inputs{{"training examples", setup.train->size()},
                                {"test examples", setup.test->size()},
                                {"data", hash},
                                {"vocabulary", setup.fingerprint}};
  if (setup.validation) inputs["validation examples"] = setup.validation->size();
  return inputs;
}

}  // namespace syncopate::run
