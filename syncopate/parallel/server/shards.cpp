#include "syncopate/parallel/server/shards.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"

namespace syncopate::parallel {

Layout layout_of(const tensor::FlatParams& params) {
  Layout layout{params.size(), params.values.scalar_type(), params.entries()};
  for (auto& entry : layout.entries) entry.parameter = at::Tensor();
  return layout;
}

std::string to_text(const Layout& layout) {
  nlohmann::json entries = nlohmann::json::array();
  for (const auto& entry : layout.entries) {
    entries.push_back({entry.name, entry.offset, entry.size, entry.decay});
  }
  return nlohmann::json{layout.size, static_cast<int>(layout.type), entries}.dump();
}

Layout layout_from(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  Layout layout{json.at(0), static_cast<at::ScalarType>(json.at(1).get<int>()), {}};
  for (const auto& entry : json.at(2)) {
    layout.entries.push_back({entry.at(0), at::Tensor(), entry.at(1), entry.at(2), entry.at(3)});
  }
  return layout;
}

std::vector<Slice> shards_of(const Layout& layout, int servers, bool whole_tensors) {
  check(servers >= 1, "there is a server");
  // Parameters begin at multiples of this, so a shard never begins in the gap behind one.
  constexpr int64_t kUnit = 16;
  const int64_t most = whole_tensors ? static_cast<int64_t>(layout.entries.size()) : layout.size / kUnit;
  if (servers > most) {
    throw ConfigError("{} servers are too many for {} parameter{}: nothing is left for some; use fewer",
                      servers, whole_tensors ? most : layout.size,
                      whole_tensors ? " tensors, which this optimizer needs whole" : "s");
  }
  if (whole_tensors) return split_between_tensors(layout.entries, layout.size, servers);
  std::vector<Slice> shards;
  for (int64_t server = 0; server < servers; ++server) {
    const auto edge = [&](int64_t number) { return layout.size / kUnit * number / servers * kUnit; };
    shards.push_back({edge(server), server + 1 < servers ? edge(server + 1) : layout.size});
  }
  return shards;
}

Layout part_of(const Layout& layout, const Slice& shard) {
  Layout part{shard.size(), layout.type, {}};
  for (const auto& entry : layout.entries) {
    const int64_t begin = std::max(entry.offset, shard.begin);
    const int64_t end = std::min(entry.offset + entry.size, shard.end);
    if (begin < end) {
      part.entries.push_back({entry.name, at::Tensor(), begin - shard.begin, end - begin, entry.decay});
    }
  }
  return part;
}

}  // namespace syncopate::parallel
