#include "syncopate/network/import.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/quantile.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/tables/table.h"

namespace syncopate::network {
namespace {

using corpora::Table;
using Pair = std::pair<std::string, std::string>;

/// What the files say, by ordered pair of regions.
class Measurements {
 public:
  void read(const std::filesystem::path& file) {
    const Table table(file, corpora::TableForm::kCsv);
    if (table.find_column("region_a")) return read_pairs(table);
    if (table.find_column("src_region") && table.find_column("throughput_received")) {
      return read_cloud(
          table, "throughput_received", [](double bits) { return bits / 1e9; }, gbit_);
    }
    if (table.find_column("src_region") && table.find_column("avg_rtt"))
      return read_cloud(
          table, "avg_rtt", [](double rtt) { return rtt / 2; }, latency_);
    if (table.find_column("latency_ms")) return read_matrix(file, table, "latency_ms", latency_);
    if (table.find_column("gbit")) return read_matrix(file, table, "gbit", gbit_);
    throw DataError(
        "{}: none of the tables that can be read: its columns are {}; expected region_a, region_b, delay_ms "
        "and "
        "bandwidth_gbps, or src_region, dst_region and throughput_received or avg_rtt, or a matrix whose "
        "first "
        "cell is latency_ms or gbit",
        file.string(), table.column_names());
  }

  const std::vector<std::string>& regions() const { return regions_; }

  Link link(const std::string& from, const std::string& to) const {
    Link link;
    const auto gbit = median_of(gbit_, {from, to});
    auto latency = median_of(latency_, {from, to});
    if (!latency) latency = median_of(latency_, {to, from});  // there and back is the same journey
    if (!gbit || !latency) {
      throw DataError("nothing says the {} from {} to {}; leave one of them out of --regions, or add a file",
                      gbit ? "latency" : "bandwidth", from, to);
    }
    link.gbit = *gbit;
    link.latency_ms = *latency;
    return link;
  }

  bool knows(const std::string& from, const std::string& to) const {
    return gbit_.contains({from, to}) && latency_.contains({from, to});
  }

 private:
  using Values = std::map<Pair, std::vector<double>>;

  static std::optional<double> median_of(const Values& values, const Pair& pair) {
    const auto found = values.find(pair);
    if (found == values.end()) return std::nullopt;
    return quantile(found->second, 0.5);
  }

  static double number(const Table& table, size_t row, size_t column, const char* name, bool above_zero) {
    const auto value = parse_number(trim(table.cell(row, column)));
    if (!value || !std::isfinite(*value) || *value < 0 || (above_zero && *value == 0)) {
      throw DataError("{}: {} should be a number {} but is \"{}\"", table.where(row), name,
                      above_zero ? "above 0" : "from 0", table.cell(row, column));
    }
    return *value;
  }

  void meet(const std::string& region) {
    if (std::find(regions_.begin(), regions_.end(), region) == regions_.end()) regions_.push_back(region);
  }

  void read_pairs(const Table& table) {
    const size_t a = table.column("region_a"), b = table.column("region_b");
    const size_t delay = table.column("delay_ms"), rate = table.column("bandwidth_gbps");
    for (size_t row = 0; row < table.rows(); ++row) {
      const std::string from(table.cell(row, a)), to(table.cell(row, b));
      meet(from);
      meet(to);
      const double latency = number(table, row, delay, "delay_ms", false);
      const double gbit = number(table, row, rate, "bandwidth_gbps", true);
      for (const Pair& pair : std::set<Pair>{{from, to}, {to, from}}) {
        if (latency_.contains(pair))
          throw DataError("{}: {} and {} are there twice", table.where(row), from, to);
        latency_[pair] = {latency};
        gbit_[pair] = {gbit};
      }
    }
  }

  template <typename Convert>
  void read_cloud(const Table& table, const char* what, Convert convert, Values& into) {
    const size_t src = table.column("src_region"), dst = table.column("dst_region"),
                 value = table.column(what);
    const auto src_tier = table.find_column("src_tier"), dst_tier = table.find_column("dst_tier");
    const auto success = table.find_column("success");
    Values other_tiers;
    for (size_t row = 0; row < table.rows(); ++row) {
      if (success && table.cell(row, *success) != "True") continue;
      const Pair pair{std::string(table.cell(row, src)), std::string(table.cell(row, dst))};
      meet(pair.first);
      meet(pair.second);
      const bool premium = (!src_tier || table.cell(row, *src_tier) == "PREMIUM") &&
                           (!dst_tier || table.cell(row, *dst_tier) == "PREMIUM");
      (premium ? into : other_tiers)[pair].push_back(convert(number(table, row, value, what, true)));
    }
    for (auto& [pair, values] : other_tiers) into.try_emplace(pair, std::move(values));
  }

  /// The columns' names are the regions, and so are the cells of the first column.
  void read_matrix(const std::filesystem::path& file, const Table& table, const char* what, Values& into) {
    std::vector<std::string> rows;
    for (size_t row = 0; row < table.rows(); ++row) rows.emplace_back(table.cell(row, table.column(what)));
    if (rows.size() + 1 != table.columns()) {
      throw DataError("{}: the matrix is not square: it has {} rows and {} columns", file.string(),
                      rows.size(), table.columns() - 1);
    }
    for (size_t row = 0; row < rows.size(); ++row) {
      if (!table.find_column(rows[row]))
        throw DataError("{}: the matrix is not square: {} has a row and no column", table.where(row),
                        rows[row]);
    }
    for (size_t row = 0; row < rows.size(); ++row) {
      meet(rows[row]);
      for (const std::string& to : rows) {
        if (to == rows[row]) continue;
        into[{rows[row], to}] = {number(table, row, table.column(to), what, &into == &gbit_)};
      }
    }
  }

  Values latency_, gbit_;
  std::vector<std::string> regions_;  ///< as they first appear
};

/// "us-east-1" for "aws:us-east-1".
std::string without_cloud(const std::string& region) {
  const size_t colon = region.find(':');
  return colon == std::string::npos ? region : region.substr(colon + 1);
}

std::string find_region(const std::vector<std::string>& known, const std::string& wanted) {
  if (std::find(known.begin(), known.end(), wanted) != known.end()) return wanted;
  std::vector<std::string> short_names;
  std::string found;
  for (const std::string& region : known) {
    short_names.push_back(without_cloud(region));
    if (short_names.back() != wanted) continue;
    if (!found.empty()) throw ConfigError("region {} may be {} or {}; write it whole", wanted, found, region);
    found = region;
  }
  if (!found.empty()) return found;
  std::vector<std::string> all = known;
  all.insert(all.end(), short_names.begin(), short_names.end());
  const auto near = nearest(wanted, all);
  throw ConfigError("no file has a region \"{}\"{}", wanted,
                    near ? fmt::format("; did you mean \"{}\"?", *near)
                         : fmt::format("; there are {}, such as {}", known.size(), known.front()));
}

}  // namespace

Topology import_csv(const ImportOptions& options) {
  if (options.files.empty()) throw ConfigError("import needs a CSV file of measurements");
  if (options.hosts_per_region < 1 || options.hosts_per_region > 4096)
    throw ConfigError("--hosts-per-region must be from 1 to 4096, got {}", options.hosts_per_region);
  Measurements measured;
  for (const std::filesystem::path& file : options.files) measured.read(file);
  std::vector<std::string> regions;
  for (const std::string& wanted : options.regions.empty() ? measured.regions() : options.regions) {
    regions.push_back(find_region(measured.regions(), wanted));
    if (std::count(regions.begin(), regions.end(), regions.back()) > 1)
      throw ConfigError("--regions names {} twice", regions.back());
  }
  std::vector<Host> hosts;
  for (const std::string& region : regions) {
    for (int k = 0; k < options.hosts_per_region; ++k)
      hosts.push_back({.name = fmt::format("{}-{}", without_cloud(region), k), .region = region});
  }
  std::vector<Link> links;
  for (const Host& from : hosts) {
    for (const Host& to : hosts) {
      if (&from == &to) {
        links.push_back(kMemory);
      } else if (from.region != to.region || measured.knows(from.region, to.region)) {
        links.push_back(measured.link(from.region, to.region));
      } else if (options.inside) {
        links.push_back(*options.inside);
      } else {
        throw ConfigError(
            "the files do not say what is between hosts inside {}: give --inside LATENCY_MS,GBIT",
            from.region);
      }
    }
  }
  return Topology(options.name, std::move(hosts), std::move(links));
}

}  // namespace syncopate::network
