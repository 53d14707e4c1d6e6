#include "syncopate/plan/placement_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/network/topology.h"
#include "syncopate/spec/strategies.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::plan {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "syncopate-placement-1";
constexpr int64_t kMostCount = 1'000'000;

/// A placement's JSON, with sentences about what is wrong in it.
class Reader {
 public:
  explicit Reader(fs::path path) : path_(std::move(path)) {
    json_ = Json::parse(read_file(path_, "placement"), nullptr, false);
    if (!json_.is_object() || json_.value("format", Json()) != kFormat)
      throw DataError("{} is no placement; write one with `syncopate plan --out FILE`", path_.string());
  }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) const {
    throw DataError("{}: {}; write another with `syncopate plan --out FILE`", path_.string(),
                    fmt::format(sentence, std::forward<Args>(args)...));
  }
  void expect(bool holds, const char* sentence) const {
    if (!holds) fail("{}", sentence);
  }

  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail("{} is missing", key);
    return *found;
  }
  bool has(const char* key) const { return json_.contains(key) && !json_.at(key).is_null(); }
  std::string text(const char* key) const {
    if (!at(key).is_string()) fail("{} is no text", key);
    return at(key).get<std::string>();
  }
  int64_t count(const Json& value, const char* what, int64_t least) const {
    if (!value.is_number() || value.get<double>() != std::floor(value.get<double>()) ||
        value.get<double>() < static_cast<double>(least) || value.get<double>() > kMostCount)
      fail("{} must be a whole number from {}, got {}", what, least, value.dump());
    return static_cast<int64_t>(value.get<double>());
  }
  const Json& list(const Json& value, const char* what) const {
    if (!value.is_array() || value.empty()) fail("{} must be a list, got {}", what, value.dump());
    return value;
  }

 private:
  fs::path path_;
  Json json_;
};

void read_stages(const Reader& file, PlacementFile& placement) {
  int64_t devices = 0;
  for (const PlacementFile::Host& host : placement.hosts) devices += host.devices;
  std::vector<bool> used(static_cast<size_t>(devices));
  for (const Json& stage : file.list(file.at("stages"), "stages")) {
    std::vector<int>& own = placement.stages.emplace_back();
    for (const Json& each : file.list(stage, "a stage")) {
      const int64_t device = file.count(each, "a device", 0);
      if (device >= devices) file.fail("there is no device {}: its hosts have {}", device, devices);
      if (used[static_cast<size_t>(device)]) file.fail("device {} has two places", device);
      used[static_cast<size_t>(device)] = true;
      own.push_back(static_cast<int>(device));
    }
    if (own.size() != placement.stages.front().size())
      file.fail("its stages have {} and {} devices, not as many each", placement.stages.front().size(),
                own.size());
  }
}

/// The settings of a run, each of which somebody may have given already.
class Settings {
 public:
  Settings(const PlacementFile& placement, spec::RunSpec& spec, const std::vector<std::string>& given)
      : placement_(placement), spec_(spec), given_(given) {}

  bool is_given(std::string_view name) const {
    return std::find(given_.begin(), given_.end(), name) != given_.end();
  }
  void set(const char* name, const std::string& text) {
    spec::RunSpec wanted = spec_;
    const Fields theirs = wanted.fields();
    const std::string placed = Fields::text_of(theirs.set(name, text));
    const Fields ours = spec_.fields();
    const Fields::Field& field = ours.find(name);
    if (const std::string asked = Fields::text_of(field); is_given(name) && asked != placed) {
      throw ConfigError("{} {} contradicts the placement {}, which has {}; leave one of them out",
                        field.label(), asked, placement_.path.string(), placed);
    }
    ours.set(name, text);
  }
  void set(const char* name, int64_t number) { set(name, std::to_string(number)); }
  void set_unless_given(const char* name, const std::string& text) {
    if (!is_given(name)) set(name, text);
  }

 private:
  const PlacementFile& placement_;
  spec::RunSpec& spec_;
  const std::vector<std::string>& given_;
};

/// Devices in use, ascending: rank i is the i-th of them.
std::vector<int> devices_of(const PlacementFile& placement) {
  std::vector<int> all;
  for (const auto& stage : placement.stages) all.insert(all.end(), stage.begin(), stage.end());
  std::sort(all.begin(), all.end());
  return all;
}

/// "0,2/1,3": the ranks of each stage.
std::string layout_of(const PlacementFile& placement) {
  const std::vector<int> devices = devices_of(placement);
  std::string layout;
  for (const auto& stage : placement.stages) {
    std::vector<int64_t> ranks;
    for (const int device : stage)
      ranks.push_back(std::lower_bound(devices.begin(), devices.end(), device) - devices.begin());
    layout += fmt::format("{}{}", layout.empty() ? "" : "/", fmt::join(ranks, ","));
  }
  return layout;
}

/// Each host with the devices in use, in the order of the cluster file: so ranks sit as devices are numbered.
std::string hosts_of(const PlacementFile& placement) {
  const std::vector<int> used = devices_of(placement);
  std::string hosts;
  int first = 0;
  for (const PlacementFile::Host& host : placement.hosts) {
    const auto count = std::count_if(used.begin(), used.end(), [&](int device) {
      return device >= first && device < first + host.devices;
    });
    first += host.devices;
    if (count == 0) continue;
    hosts += (hosts.empty() ? "" : ",") + host.name;
    if (count < host.devices) hosts += fmt::format(":{}", count);
  }
  return hosts;
}

void take_network(const PlacementFile& placement, spec::RunSpec& spec, Settings& settings) {
  std::string name = placement.cluster.empty() ? placement.network : placement.cluster;
  const auto& presets = network::preset_names();
  const bool preset = std::find(presets.begin(), presets.end(), name) != presets.end();
  std::error_code ignored;
  if (settings.is_given("network.name")) {
    name = spec.network.name;
  } else if (!preset && placement.cluster.empty()) {
    return;  // one that has a name and nothing else
  } else if (!preset && !fs::exists(name, ignored)) {
    const fs::path beside = placement.path.parent_path() / fs::path(name).filename();
    if (!fs::exists(beside, ignored)) {
      throw ConfigError(
          "the placement {} is for the cluster file {}, which is not there; give it with --network",
          placement.path.string(), name);
    }
    name = beside.string();
  }
  std::vector<PlacementFile::Host> hosts;
  const network::Topology topology = network::load(name);
  for (const network::Host& host : topology.hosts()) hosts.push_back({host.name, host.devices});
  if (hosts != placement.hosts) {
    throw ConfigError("the placement {} is for {}, and network {} has other hosts; plan again for it",
                      placement.path.string(), placement.network, name);
  }
  settings.set("network.name", name);
  settings.set("network.scale", fmt::format("{}", placement.scale));
  settings.set("network.hosts", hosts_of(placement));
}

void take_activations(const PlacementFile& placement, const spec::RunSpec& spec, Settings& settings) {
  if (placement.forward_bits > 8)
    return settings.set("activation.codec", std::string(placement.forward_bits == 16 ? "fp16" : "none"));
  const std::string& asked = spec.activation.codec;
  // What two codecs of few bits send has the same size.
  const bool chosen = settings.is_given("activation.codec") && spec::activation_codec_info(asked).quantises;
  settings.set("activation.codec",
               chosen ? asked : std::string(spec::examples_come_back(spec) ? "ac-sgd" : "direct"));
  settings.set("activation.forward_bits", placement.forward_bits);
  settings.set("activation.backward_bits", placement.backward_bits);
}

}  // namespace

PlacementFile read_placement(const fs::path& path) {
  const Reader file(path);
  PlacementFile placement{.path = path, .network = file.text("network")};
  if (file.has("cluster")) placement.cluster = file.text("cluster");
  file.expect(file.at("scale").is_number() && file.at("scale").get<double>() > 0, "scale must be above 0");
  placement.scale = file.at("scale").get<double>();
  for (const Json& host : file.list(file.at("hosts"), "hosts")) {
    file.expect(
        host.is_object() && host.contains("name") && host.at("name").is_string() && host.contains("devices"),
        "a host has no name or no devices");
    placement.hosts.push_back({host.at("name").get<std::string>(),
                               static_cast<int>(file.count(host.at("devices"), "a host's devices", 1))});
  }
  read_stages(file, placement);
  placement.micro_batches = file.count(file.at("micro_batches"), "micro_batches", 1);
  if (file.has("global_batch"))
    placement.global_batch = file.count(file.at("global_batch"), "global_batch", 1);
  placement.schedule = file.has("schedule") ? file.text("schedule") : "gpipe";
  file.expect(placement.schedule == "gpipe" || placement.schedule == "1f1b",
              "schedule must be gpipe or 1f1b");
  if (file.has("cut")) {
    for (const Json& blocks : file.list(file.at("cut"), "cut"))
      placement.cut.push_back(file.count(blocks, "a stage's blocks", 1));
    file.expect(placement.cut.size() == placement.stages.size(), "cut must have a number for each stage");
  }
  const Json& bits = file.at("bits");
  file.expect(bits.is_object(), "bits must be an object");
  for (const auto& [key, target] : {std::pair{"forward", &placement.forward_bits},
                                    {"backward", &placement.backward_bits},
                                    {"gradient", &placement.gradient_bits}}) {
    if (!bits.contains(key)) file.fail("bits has no {}", key);
    *target = file.count(bits.at(key), "a number of bits", 1);
  }
  const bool either = placement.forward_bits > 8 || placement.backward_bits > 8;
  const bool known = placement.forward_bits == 32 || placement.forward_bits == 16;
  file.expect(!either || (known && placement.forward_bits == placement.backward_bits),
              "bits of activations and their gradients must be 32, or 16, of both, or 1 to 8 of each");
  return placement;
}

void take_placement(const PlacementFile& placement, spec::RunSpec& spec,
                    const std::vector<std::string>& given) {
  Settings settings(placement, spec, given);
  const auto stages = static_cast<int64_t>(placement.stages.size());
  const auto replicas = static_cast<int64_t>(placement.stages.front().size());
  settings.set("comm.workers", stages * replicas);
  settings.set("pipeline.stages", stages);
  if (placement.global_batch > 0 && !settings.is_given("train.batch_size")) {
    if (!settings.is_given("train.global_batch")) spec.train.batch_size = 0;
    settings.set_unless_given("train.global_batch", std::to_string(placement.global_batch));
  }
  if (stages > 1) {
    settings.set("pipeline.layout", layout_of(placement));
    settings.set("pipeline.micro_batches", placement.micro_batches);
    if (!placement.cut.empty())
      settings.set("pipeline.cut", fmt::format("{}", fmt::join(placement.cut, ",")));
    settings.set_unless_given("pipeline.schedule", placement.schedule);
    take_activations(placement, spec, settings);
  } else {
    settings.set("train.accumulate", placement.micro_batches);
  }
  if (replicas > 1) {
    static const std::map<int64_t, std::string> kCodecs{{32, "none"}, {16, "fp16"}, {8, "int8"}, {4, "int4"}};
    const auto codec = kCodecs.find(placement.gradient_bits);
    if (codec == kCodecs.end()) {
      throw DataError("{}: no codec has {} bits for gradients; they are 32, 16, 8 or 4",
                      placement.path.string(), placement.gradient_bits);
    }
    settings.set("codec.name", codec->second);
  }
  take_network(placement, spec, settings);
}

}  // namespace syncopate::plan
