#include "syncopate/parallel/shards.h"

#include <algorithm>
#include <cmath>
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

std::vector<Shard> cut(const Layout& layout, int servers, bool whole_tensors) {
  check(servers >= 1, "there is a server");
  // Parameters begin at multiples of this, so a shard never begins in the gap behind one.
  constexpr int64_t kUnit = 16;
  std::vector<int64_t> places;  // to choose from, ascending, when tensors stay whole
  for (const auto& entry : layout.entries) places.push_back(entry.offset);
  places.push_back(layout.size);
  std::vector<Shard> shards;
  int64_t begin = 0;
  for (int server = 0; server < servers; ++server) {
    const int64_t ideal = layout.size * (server + 1) / servers;
    int64_t end = layout.size;
    if (server + 1 < servers && whole_tensors) {
      end = *std::min_element(places.begin(), places.end(), [&](int64_t a, int64_t b) {
        return std::abs(a - ideal) < std::abs(b - ideal);
      });
    } else if (server + 1 < servers) {
      end = ideal / kUnit * kUnit;
    }
    if (end <= begin) {
      throw ConfigError("{} servers are too many for {} parameter{}: nothing is left for some; use fewer",
                        servers, whole_tensors ? layout.entries.size() : static_cast<size_t>(layout.size),
                        whole_tensors ? " tensors, which this optimizer needs whole" : "s");
    }
    shards.push_back({begin, end});
    begin = end;
  }
  return shards;
}

Layout part_of(const Layout& layout, const Shard& shard) {
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
