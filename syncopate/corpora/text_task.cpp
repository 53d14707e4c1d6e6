#include "syncopate/corpora/text_task.h"

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::corpora {

std::string_view name_of(Split split) {
  constexpr std::string_view kNames[] = {"train", "validation", "test"};
  return kNames[static_cast<size_t>(split)];
}

uint64_t stable_hash(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3ULL;
  return mix(hash);
}

std::vector<char> held_out(const std::vector<uint64_t>& keys, size_t count) {
  check(count <= keys.size(), "no more held out than there are");
  std::vector<char> held(keys.size(), 0);
  if (count == 0) return held;
  std::vector<uint64_t> sorted = keys;
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(sorted.begin(), last, sorted.end());
  const uint64_t largest = *last;
  auto room = count - static_cast<size_t>(std::count_if(keys.begin(), keys.end(),
                                                        [&](uint64_t key) { return key < largest; }));
  for (size_t i = 0; i < keys.size(); ++i) {
    held[i] = keys[i] < largest || (keys[i] == largest && room > 0);
    if (keys[i] == largest && room > 0) --room;
  }
  return held;
}

size_t a_tenth(size_t all) { return all == 0 ? 0 : std::max<size_t>(1, all / 10); }

void hold_out(std::vector<TextExample> examples, const std::vector<uint64_t>& keys, int64_t count,
              TextTask& task) {
  check(examples.size() == keys.size(), "one key per example");
  const std::vector<char> held = held_out(keys, static_cast<size_t>(count));
  for (size_t i = 0; i < examples.size(); ++i) {
    (held[i] != 0 ? task.test : task.train).push_back(std::move(examples[i]));
  }
}

}  // namespace syncopate::corpora
