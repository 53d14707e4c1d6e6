#include "syncopate/lifeline/key_values.h"

#include "syncopate/base/text.h"

namespace syncopate::lifeline {

KeyValues::Answers KeyValues::set(const std::string& key, std::string value) {
  values_[key] = std::move(value);
  auto found = waiting_.extract(key);
  return found.empty() ? Answers{} : std::move(found.mapped());
}

std::pair<int64_t, KeyValues::Answers> KeyValues::add(const std::string& key, int64_t number) {
  const auto found = values_.find(key);
  const int64_t sum = number + (found == values_.end() ? 0 : parse_integer(found->second).value_or(0));
  return {sum, set(key, std::to_string(sum))};
}

const std::string* KeyValues::get(const std::string& key, const Reader& reader) {
  const auto found = values_.find(key);
  if (found != values_.end()) return &found->second;
  waiting_[key].push_back(reader);
  return nullptr;
}

}  // namespace syncopate::lifeline
