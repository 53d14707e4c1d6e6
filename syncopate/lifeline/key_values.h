#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace syncopate::lifeline {

/// The server's key-value store, with readers that wait for a key to appear.
class KeyValues {
 public:
  struct Reader {
    int rank = 0;
    int64_t id = 0;  ///< of the request to answer
  };
  using Answers = std::vector<Reader>;

  /// Who waited for the key and is to be given its value now.
  Answers set(const std::string& key, std::string value);
  /// Numbers are kept as decimal text; an absent key counts as 0. Returns the sum and who waited for the key.
  std::pair<int64_t, Answers> add(const std::string& key, int64_t number);
  /// The value, or null: then the reader is remembered.
  const std::string* get(const std::string& key, const Reader& reader);
  bool has(const std::string& key) const { return values_.contains(key); }
  bool erase(const std::string& key) { return values_.erase(key) > 0; }
  int64_t count() const { return static_cast<int64_t>(values_.size()); }

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, Answers> waiting_;
};

}  // namespace syncopate::lifeline
