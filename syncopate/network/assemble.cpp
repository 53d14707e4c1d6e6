#include "syncopate/network/assemble.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::network {
namespace {

/// What stands for a host in lines: itself, or its region.
class Names {
 public:
  Names(const std::string& network, const std::vector<Host>& hosts) : network_(network) {
    for (size_t k = 0; k < hosts.size(); ++k) {
      if (!hosts_.emplace(hosts[k].name, std::vector<int>{static_cast<int>(k)}).second)
        throw ConfigError("network {}: host {} is there twice", network_, hosts[k].name);
      regions_[hosts[k].region].push_back(static_cast<int>(k));
    }
    for (const auto& [name, members] : hosts_) {
      const auto region = regions_.find(name);
      if (region == regions_.end() || region->second == members) continue;
      throw ConfigError("network {}: {} is the name of a host and of a region with other hosts", network_,
                        name);
    }
  }
  bool is_host(const std::string& name) const { return hosts_.contains(name); }
  const std::vector<int>& members(const std::string& name) const {
    if (const auto host = hosts_.find(name); host != hosts_.end()) return host->second;
    if (const auto region = regions_.find(name); region != regions_.end()) return region->second;
    std::vector<std::string> known;
    for (const auto& [region, hosts] : regions_) known.push_back(region);
    if (hosts_.size() <= 12) {
      for (const auto& [host, number] : hosts_) known.push_back(host);
    }
    throw ConfigError("network {}: a link names \"{}\", which is no host and no region{}", network_, name,
                      suggestion(name, known));
  }

 private:
  const std::string& network_;
  std::map<std::string, std::vector<int>> hosts_, regions_;
};

struct Told {
  Link link;
  int closeness = -1;  ///< how many of its two names were a host's; -1: nothing was told
};

}  // namespace

Topology assemble(std::string name, std::vector<Host> hosts, const std::vector<LinkLine>& lines) {
  const Names names(name, hosts);
  const size_t n = hosts.size();
  std::vector<Told> told(n * n);
  for (const LinkLine& line : lines) {
    const int closeness = (names.is_host(line.a) ? 1 : 0) + (names.is_host(line.b) ? 1 : 0);
    std::set<std::pair<size_t, size_t>> by_this;
    const auto tell = [&](int from, int to, const Link& link) {
      const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
      Told& cell = told[f * n + t];
      if (cell.closeness > closeness) return;
      if (cell.closeness == closeness && !by_this.contains({f, t})) {
        throw ConfigError("network {}: two links say what is between {} and {}; keep one", name,
                          hosts[f].name, hosts[t].name);
      }
      cell = {link, closeness};
      by_this.insert({f, t});
    };
    const bool inside = line.a == line.b;
    for (const int a : names.members(line.a)) {
      for (const int b : names.members(line.b)) {
        // A region's link to itself joins its hosts; a host's joins its devices.
        if (a == b && !(inside && names.is_host(line.a))) continue;
        tell(a, b, line.there);
        if (!inside) tell(b, a, line.back);
      }
    }
  }
  std::vector<Link> links;
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      const Told& cell = told[from * n + to];
      if (cell.closeness < 0 && from != to) {
        throw ConfigError(
            "network {}: nothing says what is between {} and {}; add [[link]] between = [\"{}\", "
            "\"{}\"] with latency_ms and gbit",
            name, hosts[from].name, hosts[to].name, hosts[from].region, hosts[to].region);
      }
      links.push_back(cell.closeness < 0 ? kMemory : cell.link);
    }
  }
  return Topology(std::move(name), std::move(hosts), std::move(links));
}

}  // namespace syncopate::network
