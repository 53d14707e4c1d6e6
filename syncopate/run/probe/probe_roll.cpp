#include "syncopate/run/probe/probe_roll.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "syncopate/lifeline/proof.h"

namespace syncopate::run {

Roll call_roll(lifeline::Lifeline& line, const Seat& seat, const lifeline::Address& mine,
               std::chrono::milliseconds timeout) {
  const nlohmann::json self{{"host", seat.host},
                            {"region", seat.region},
                            {"machine", seat.machine},
                            {"address", mine.host},
                            {"port", mine.port}};
  line.set(fmt::format("probe/rank/{}", line.rank()), self.dump());
  if (line.rank() == 0) {
    nlohmann::json all = nlohmann::json::array();
    for (int rank = 0; rank < line.size(); ++rank)
      all.push_back(nlohmann::json::parse(line.get(fmt::format("probe/rank/{}", rank), timeout)));
    line.set("probe/roll", nlohmann::json{{"ranks", all}, {"key", lifeline::random_key()}}.dump());
  }
  const nlohmann::json roll = nlohmann::json::parse(line.get("probe/roll", timeout));
  Roll made;
  made.key = roll.at("key");
  std::map<std::pair<std::string, std::string>, int> known;
  std::vector<int> second;
  for (const nlohmann::json& each : roll.at("ranks")) {
    made.seats.push_back(
        {.host = each.at("host"), .region = each.at("region"), .machine = each.at("machine")});
    made.addresses.push_back({each.at("address"), each.at("port")});
    const int rank = static_cast<int>(made.hosts.size());
    const auto [found, fresh] = known.try_emplace({made.seats.back().host, made.seats.back().machine},
                                                  static_cast<int>(made.first.size()));
    made.hosts.push_back(found->second);
    if (fresh) {
      made.first.push_back(rank);
      second.push_back(-1);
    } else if (second[static_cast<size_t>(found->second)] < 0) {
      second[static_cast<size_t>(found->second)] = rank;
    }
  }
  for (const auto& round : rounds_of_pairs(static_cast<int>(made.first.size()))) {
    for (const auto& [a, b] : round) {
      const int x = made.first[static_cast<size_t>(a)], y = made.first[static_cast<size_t>(b)];
      made.pairs.push_back({.low = std::min(x, y), .high = std::max(x, y)});
    }
  }
  for (size_t host = 0; host < second.size(); ++host) {
    if (second[host] >= 0)
      made.pairs.push_back({.low = made.first[host], .high = second[host], .inside = true});
  }
  return made;
}

std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int n) {
  std::vector<std::vector<std::pair<int, int>>> rounds;
  const int even = n + n % 2;  // with an odd number one rests
  for (int round = 0; round < even - 1; ++round) {
    std::vector<std::pair<int, int>> pairs;
    for (int k = 0; k < even / 2; ++k) {
      // The last stays where it is, the others move around a circle.
      const int a = k == 0 ? even - 1 : (round + k) % (even - 1), b = (round - k + even - 1) % (even - 1);
      if (a < n && b < n) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
    rounds.push_back(std::move(pairs));
  }
  return rounds;
}

}  // namespace syncopate::run
