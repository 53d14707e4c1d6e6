#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace syncopate::text {

/// How often texts hold each word.
class WordCounts {
 public:
  void add(std::string_view word, int64_t times = 1) {
    if (const auto found = counts_.find(word); found != counts_.end()) {
      found->second += times;
    } else {
      counts_.emplace(word, times);
    }
  }
  void add(const WordCounts& others) {
    for (const auto& [word, times] : others.counts_) add(word, times);
  }
  auto begin() const { return counts_.begin(); }
  auto end() const { return counts_.end(); }
  bool empty() const { return counts_.empty(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace syncopate::text
