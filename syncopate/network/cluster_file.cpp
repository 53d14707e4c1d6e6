#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/network/assemble.h"
#include "syncopate/network/presets.h"

// Reads and writes cluster files: docs/formats/cluster.md.
namespace syncopate::network {
namespace {

/// A table of a cluster file, read key by key; complains with file and line.
class Table {
 public:
  Table(const toml::node& node, std::string kind, std::string where)
      : kind_(std::move(kind)), where_(std::move(where)) {
    table_ = node.as_table();
    line_ = node.source().begin.line;
    if (table_ == nullptr) fail("must be a table");
  }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw ConfigError("{}, line {}: {} {}", where_, line_, kind_,
                      fmt::format(text, std::forward<Args>(args)...));
  }

  void only(const std::vector<std::string>& known) const {
    for (const auto& [key, node] : *table_) {
      const std::string name(key.str());
      if (std::find(known.begin(), known.end(), name) == known.end())
        fail("has no \"{}\"{}", name, suggestion(name, known));
    }
  }

  std::optional<std::string> text(const char* key) const {
    const toml::node* node = table_->get(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_string()) fail("{} must be a text", key);
    return *node->value<std::string>();
  }

  std::optional<double> number(const char* key) const {
    const toml::node* node = table_->get(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_number()) fail("{} must be a number", key);
    const double value = *node->value<double>();
    if (!std::isfinite(value)) fail("{} must be a finite number", key);
    return value;
  }

  double needed(const char* key) const {
    const auto value = number(key);
    if (!value) fail("needs {}", key);
    return *value;
  }

  const toml::node* get(const char* key) const { return table_->get(key); }

 private:
  const toml::table* table_ = nullptr;
  std::string kind_, where_;
  toml::source_index line_ = 0;
};

Host host_from(const Table& table) {
  table.only({"name", "region", "devices", "speed", "memory_gib", "price_hour"});
  Host host;
  host.name = table.text("name").value_or("");
  if (host.name.empty()) table.fail("needs a name");
  host.region = table.text("region").value_or(host.name);
  const double devices = table.number("devices").value_or(1);
  if (devices != std::floor(devices) || devices < 1 || devices > 4096)
    table.fail("{}: devices must be a whole number from 1, got {}", host.name, devices);
  host.devices = static_cast<int>(devices);
  host.speed = table.number("speed").value_or(1);
  host.memory_gib = table.number("memory_gib").value_or(0);
  host.price_hour = table.number("price_hour").value_or(0);
  return host;
}

LinkLine link_from(const Table& table) {
  table.only({"between", "latency_ms", "latency_back_ms", "gbit", "gbit_back", "jitter_ms", "jitter_back_ms",
              "loss", "loss_back"});
  const toml::node* between = table.get("between");
  const toml::array* ends = between == nullptr ? nullptr : between->as_array();
  if (ends == nullptr || ends->size() != 2 || !ends->get(0)->is_string() || !ends->get(1)->is_string())
    table.fail("needs between = [\"A\", \"B\"], two hosts or regions");
  LinkLine line;
  line.a = *ends->get(0)->value<std::string>();
  line.b = *ends->get(1)->value<std::string>();
  line.there.latency_ms = table.needed("latency_ms");
  line.there.gbit = table.needed("gbit");
  line.there.jitter_ms = table.number("jitter_ms").value_or(0);
  line.there.loss = table.number("loss").value_or(0);
  line.back = {.latency_ms = table.number("latency_back_ms").value_or(line.there.latency_ms),
               .gbit = table.number("gbit_back").value_or(line.there.gbit),
               .jitter_ms = table.number("jitter_back_ms").value_or(line.there.jitter_ms),
               .loss = table.number("loss_back").value_or(line.there.loss)};
  if (line.a == line.b && line.back != line.there) {
    const std::array names{"latency_back_ms", "gbit_back", "jitter_back_ms", "loss_back"};
    const auto* given = std::find_if(names.begin(), names.end(),
                                     [&](const char* name) { return table.get(name) != nullptr; });
    table.fail("between {} and itself has one direction: leave {} out", line.a, *given);
  }
  for (const Link& link : {line.there, line.back}) {
    const std::string who = fmt::format("between {} and {}:", line.a, line.b);
    if (!(link.gbit > 0)) table.fail("{} gbit must be above 0, got {}", who, link.gbit);
    if (!(link.latency_ms >= 0))
      table.fail("{} latency_ms must not be negative, got {}", who, link.latency_ms);
  }
  return line;
}

template <typename Item, typename Read>
std::vector<Item> items(const toml::table& file, const char* key, const std::string& where, Read read) {
  std::vector<Item> all;
  const toml::node* node = file.get(key);
  if (node == nullptr) return all;
  const toml::array* list = node->as_array();
  const std::string kind = fmt::format("[[{}]]", key);
  if (list == nullptr) throw ConfigError("{}: write {} with two brackets", where, kind);
  for (const toml::node& each : *list) all.push_back(read(Table(each, kind, where)));
  return all;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// The shortest text that is read back as the same number, and as a number that TOML knows.
std::string number(double value) { return fmt::format("{}", value); }

std::string link_text(const std::string& a, const std::string& b, const Link& there, const Link& back) {
  std::string text = fmt::format("[[link]]\nbetween = [{}, {}]\nlatency_ms = {}\ngbit = {}\n", quoted(a),
                                 quoted(b), number(there.latency_ms), number(there.gbit));
  const auto put = [&](const char* name, double value, double usual) {
    if (value != usual) text += fmt::format("{} = {}\n", name, number(value));
  };
  put("latency_back_ms", back.latency_ms, there.latency_ms);
  put("gbit_back", back.gbit, there.gbit);
  put("jitter_ms", there.jitter_ms, 0);
  put("jitter_back_ms", back.jitter_ms, there.jitter_ms);
  put("loss", there.loss, 0);
  put("loss_back", back.loss, there.loss);
  return text + "\n";
}

/// The link that most hosts of `a` have to those of `b`: what a line for the two regions says.
std::optional<std::pair<Link, Link>> usual_link(const Topology& topology, const std::vector<int>& a,
                                                const std::vector<int>& b) {
  std::vector<std::pair<std::pair<Link, Link>, int>> counts;
  for (const int from : a) {
    for (const int to : b) {
      if (from == to) continue;
      const std::pair links{topology.link(from, to), topology.link(to, from)};
      const auto found =
          std::find_if(counts.begin(), counts.end(), [&](const auto& each) { return each.first == links; });
      if (found == counts.end()) {
        counts.emplace_back(links, 1);
      } else {
        ++found->second;
      }
      if (counts.size() > 64) return std::nullopt;  // measured: no two are alike
    }
  }
  if (counts.empty()) return std::nullopt;
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& x, const auto& y) { return x.second < y.second; })
      ->first;
}

}  // namespace

Topology from_toml(std::string_view text, const std::string& where) {
  toml::table file;
  try {
    file = toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    throw ConfigError("{}, line {}: {}", where, error.source().begin.line, error.description());
  }
  for (const auto& [key, node] : file) {
    const std::string name(key.str());
    static const std::vector<std::string> known{"name", "host", "link"};
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw ConfigError("{}: a cluster file has no \"{}\"{}", where, name, suggestion(name, known));
  }
  const std::string name = file["name"].value_or(std::filesystem::path(where).stem().string());
  return assemble(name, items<Host>(file, "host", where, host_from),
                  items<LinkLine>(file, "link", where, link_from));
}

std::string to_toml(const Topology& topology) {
  std::string text = fmt::format("name = {}\n\n", quoted(topology.name()));
  for (const Host& host : topology.hosts()) {
    text += fmt::format("[[host]]\nname = {}\nregion = {}\n", quoted(host.name), quoted(host.region));
    if (host.devices != 1) text += fmt::format("devices = {}\n", host.devices);
    if (host.speed != 1) text += fmt::format("speed = {}\n", number(host.speed));
    if (host.memory_gib > 0) text += fmt::format("memory_gib = {}\n", number(host.memory_gib));
    if (host.price_hour > 0) text += fmt::format("price_hour = {}\n", number(host.price_hour));
    text += "\n";
  }
  const std::vector<std::string> regions = topology.regions();
  std::map<std::string, std::vector<int>> members;
  for (int host = 0; host < topology.size(); ++host)
    members[topology.hosts()[static_cast<size_t>(host)].region].push_back(host);
  for (size_t i = 0; i < regions.size(); ++i) {
    for (size_t j = i; j < regions.size(); ++j) {
      const auto usual = usual_link(topology, members[regions[i]], members[regions[j]]);
      const bool line = usual && (i != j || usual->first == usual->second);
      if (line) text += link_text(regions[i], regions[j], usual->first, usual->second);
      for (const int a : members[regions[i]]) {
        for (const int b : members[regions[j]]) {
          if (i == j && b <= a) continue;
          const Link &there = topology.link(a, b), &back = topology.link(b, a);
          if (line && std::pair(there, back) == *usual) continue;
          const auto& hosts = topology.hosts();
          text +=
              link_text(hosts[static_cast<size_t>(a)].name, hosts[static_cast<size_t>(b)].name, there, back);
        }
      }
    }
  }
  for (int host = 0; host < topology.size(); ++host) {
    const Host& each = topology.hosts()[static_cast<size_t>(host)];
    const Link& inside = topology.link(host, host);
    if (each.devices > 1 && inside != kMemory) text += link_text(each.name, each.name, inside, inside);
  }
  return text;
}

Topology load(const std::string& file_or_preset) {
  if (auto known = preset(file_or_preset)) return *std::move(known);
  const std::filesystem::path path(file_or_preset);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) && path.extension().empty()) {
    throw ConfigError("there is no network \"{}\": it is no file and no preset{}", file_or_preset,
                      suggestion(file_or_preset, preset_names()));
  }
  return from_toml(read_file(path, "cluster file"), file_or_preset);
}

}  // namespace syncopate::network
