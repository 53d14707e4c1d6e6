#include "syncopate/sim/profile.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"

namespace syncopate::sim {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kFormat = "syncopate-profile-1";

/// `key` where it stands; a profile written by hand may leave out what it does not know.
template <typename T>
void take(const Json& json, const char* key, T& value) {
  const auto found = json.find(key);
  if (found != json.end() && !found->is_null()) value = found->get<T>();
}

/// The straight line through two points, held above 0: and below the smallest batch above its share of it.
double line(double x, double x0, double y0, double x1, double y1) {
  const double y = x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y0;
  return std::max({y, 0.0, x < x0 ? y0 * x / x0 : 0.0});
}

BatchTime between(const BatchTime& a, const BatchTime& b, double batch) {
  const auto x0 = static_cast<double>(a.batch), x1 = static_cast<double>(b.batch);
  const auto at = [&](double BatchTime::*part) { return line(batch, x0, a.*part, x1, b.*part); };
  BatchTime time{.batch = std::llround(batch),
                 .forward_s = at(&BatchTime::forward_s),
                 .backward_s = at(&BatchTime::backward_s),
                 .update_s = at(&BatchTime::update_s),
                 .data_s = at(&BatchTime::data_s),
                 .other_s = at(&BatchTime::other_s)};
  if (a.peak_memory > 0 && b.peak_memory > 0) {
    const double memory =
        line(batch, x0, static_cast<double>(a.peak_memory), x1, static_cast<double>(b.peak_memory));
    time.peak_memory = std::llround(memory);
  }
  return time;
}

/// From one measured size alone: passes grow with the batch, the rest does not.
BatchTime in_proportion(const BatchTime& known, double batch) {
  const double factor = batch / static_cast<double>(std::max<int64_t>(known.batch, 1));
  BatchTime time = known;
  time.batch = std::llround(batch);
  time.forward_s *= factor;
  time.backward_s *= factor;
  time.data_s *= factor;
  return time;
}

void check_profile(const Profile& profile) {
  const auto refuse = [](const std::string& what) {
    throw DataError("the profile {}; measure it anew with `syncopate probe --profile FILE`", what);
  };
  if (profile.times.empty()) refuse("has no times of a step");
  if (profile.parameters.empty()) refuse("has no parameters");
  int64_t before = 0;
  for (const BatchTime& time : profile.times) {
    if (time.batch <= before) refuse("does not list its batch sizes in ascending order from 1");
    before = time.batch;
    for (const double s : {time.forward_s, time.backward_s, time.update_s, time.data_s, time.other_s}) {
      if (!(s >= 0) || !std::isfinite(s)) refuse("has a time that is negative or no number");
    }
  }
  for (const ParameterProfile& parameter : profile.parameters) {
    for (const int64_t size : parameter.shape) {
      if (size < 0) refuse("has a negative size in the shape of " + parameter.name);
    }
  }
  if (profile.workers < 1) refuse("was measured with fewer than 1 worker");
  if (!(profile.real_share > 0 && profile.real_share <= 1)) refuse("has a share of real rows that is none");
}

}  // namespace

int64_t ParameterProfile::elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

int64_t Profile::elements() const {
  int64_t sum = 0;
  for (const ParameterProfile& parameter : parameters) sum += parameter.elements();
  return sum;
}

BatchTime Profile::at(double batch) const {
  check(!times.empty(), "a profile without times");
  if (times.size() == 1) return in_proportion(times.front(), batch);
  size_t upper = 1;
  while (upper + 1 < times.size() && static_cast<double>(times[upper].batch) < batch) ++upper;
  return between(times[upper - 1], times[upper], batch);
}

double bytes_per_s(double gbyte) {
  constexpr double kNoLimit = 1e15;
  return gbyte > 0 ? 1e9 * gbyte : kNoLimit;
}

Json to_json(const Profile& profile) {
  Json times = Json::array(), parameters = Json::array(), layers = Json::array(), codecs = Json::array();
  for (const BatchTime& time : profile.times) {
    times.push_back({{"batch", time.batch},
                     {"forward_s", time.forward_s},
                     {"backward_s", time.backward_s},
                     {"update_s", time.update_s},
                     {"data_s", time.data_s},
                     {"other_s", time.other_s},
                     {"peak_memory", time.peak_memory}});
  }
  for (const ParameterProfile& parameter : profile.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"shape", parameter.shape},
                          {"ready", parameter.ready},  // NaN becomes null
                          {"rows", parameter.rows},
                          {"layer", parameter.layer}});
  }
  for (const LayerProfile& layer : profile.layers) {
    layers.push_back({{"name", layer.name},
                      {"share", layer.share},
                      {"parameters", layer.parameters},
                      {"output_bytes", layer.output_bytes},
                      {"channels", layer.channels},
                      {"activation_bytes", layer.activation_bytes}});
  }
  for (const CodecSpeed& codec : profile.codecs) {
    codecs.push_back({{"name", codec.name}, {"encode_s", codec.encode_s}, {"decode_s", codec.decode_s}});
  }
  return {{"format", kFormat},
          {"task", profile.task},
          {"model", profile.model},
          {"optimizer", profile.optimizer},
          {"precision", profile.precision},
          {"device", profile.device},
          {"cpu", profile.cpu},
          {"max_length", profile.max_length},
          {"workers", profile.workers},
          {"threads", profile.threads},
          {"cores", profile.cores},
          {"training_examples", profile.training_examples},
          {"real_share", profile.real_share},
          {"tied_bytes", profile.tied_bytes},
          {"times", times},
          {"parameters", parameters},
          {"layers", layers},
          {"codecs", codecs},
          {"local",
           {{"operation_s", profile.local.operation_s},
            {"loopback_gbyte", profile.local.loopback_gbyte},
            {"reduce_gbyte", profile.local.reduce_gbyte},
            {"copy_gbyte", profile.local.copy_gbyte}}}};
}

Profile profile_from_json(const Json& json) {
  if (!json.is_object() || json.value("format", "") != kFormat) {
    throw DataError("no profile of a step: its \"format\" is not \"{}\"", kFormat);
  }
  Profile profile;
  take(json, "task", profile.task);
  take(json, "model", profile.model);
  take(json, "optimizer", profile.optimizer);
  take(json, "precision", profile.precision);
  take(json, "device", profile.device);
  take(json, "cpu", profile.cpu);
  take(json, "max_length", profile.max_length);
  take(json, "workers", profile.workers);
  take(json, "threads", profile.threads);
  take(json, "cores", profile.cores);
  take(json, "training_examples", profile.training_examples);
  take(json, "real_share", profile.real_share);
  take(json, "tied_bytes", profile.tied_bytes);
  for (const Json& item : json.at("times")) {
    BatchTime& time = profile.times.emplace_back();
    time.batch = item.at("batch").get<int64_t>();
    take(item, "forward_s", time.forward_s);
    take(item, "backward_s", time.backward_s);
    take(item, "update_s", time.update_s);
    take(item, "data_s", time.data_s);
    take(item, "other_s", time.other_s);
    take(item, "peak_memory", time.peak_memory);
  }
  for (const Json& item : json.at("parameters")) {
    ParameterProfile& parameter = profile.parameters.emplace_back();
    take(item, "name", parameter.name);
    parameter.shape = item.at("shape").get<std::vector<int64_t>>();
    take(item, "ready", parameter.ready);
    take(item, "rows", parameter.rows);
    take(item, "layer", parameter.layer);
  }
  for (const Json& item : json.value("layers", Json::array())) {
    LayerProfile& layer = profile.layers.emplace_back();
    take(item, "name", layer.name);
    take(item, "share", layer.share);
    take(item, "parameters", layer.parameters);
    take(item, "output_bytes", layer.output_bytes);
    take(item, "channels", layer.channels);
    take(item, "activation_bytes", layer.activation_bytes);
  }
  for (const Json& item : json.value("codecs", Json::array())) {
    CodecSpeed& codec = profile.codecs.emplace_back();
    take(item, "name", codec.name);
    take(item, "encode_s", codec.encode_s);
    take(item, "decode_s", codec.decode_s);
  }
  const Json local = json.value("local", Json::object());
  take(local, "operation_s", profile.local.operation_s);
  take(local, "loopback_gbyte", profile.local.loopback_gbyte);
  take(local, "reduce_gbyte", profile.local.reduce_gbyte);
  take(local, "copy_gbyte", profile.local.copy_gbyte);
  check_profile(profile);
  return profile;
}

Profile read_profile(const std::filesystem::path& file) {
  const Json json = Json::parse(read_file(file, "profile of a step"), nullptr, false);
  if (json.is_discarded()) throw DataError("{} is no JSON: not a profile of a step", file.string());
  try {
    return profile_from_json(json);
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{} is no profile of a step ({}); measure it anew with `syncopate probe --profile FILE`",
                    file.string(), error.what());
  } catch (const DataError& error) {
    throw DataError("{}: {}", file.string(), error.what());
  }
}

void write_profile(const std::filesystem::path& file, const Profile& profile) {
  write_file_atomically(file, to_json(profile).dump(1) + "\n");
}

}  // namespace syncopate::sim
