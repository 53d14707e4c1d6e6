#include <cstring>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/mapped_file.h"
#include "syncopate/parallel/pipeline/activation_codec.h"

// A file: how long its head is (8 bytes), the head (JSON), what a codec keeps, a checksum over all of that.
namespace syncopate::parallel {
namespace {

using nlohmann::json;

constexpr size_t kWord = sizeof(uint64_t);

std::string word_of(uint64_t value) { return {reinterpret_cast<const char*>(&value), kWord}; }

uint64_t word_in(std::string_view bytes) {
  uint64_t value;
  std::memcpy(&value, bytes.data(), kWord);
  return value;
}

json traffic_json(const ActivationTraffic& traffic) {
  return {{"values", traffic.values},
          {"bits", traffic.bits},
          {"error", traffic.error},
          {"meant", traffic.meant},
          {"change", traffic.change}};
}

ActivationTraffic traffic_in(const json& of) {
  return {of.at("values").get<int64_t>(), of.at("bits").get<int64_t>(), of.at("error").get<double>(),
          of.at("meant").get<double>(), of.at("change").get<double>()};
}

/// Continues a checksum over pieces of any length as if they were one: each is summed up by itself.
uint64_t sum_of_pieces(const std::vector<std::string_view>& pieces) {
  uint64_t sum = 0;
  for (const std::string_view piece : pieces) sum = checksum(piece, sum);
  return sum;
}

}  // namespace

void ActivationCodec::save(const std::filesystem::path& path) const {
  const std::vector<std::string_view> rest = kept();
  std::vector<uint64_t> sizes;
  for (const std::string_view piece : rest) sizes.push_back(piece.size());
  const std::string head = json{
      {"format", 1},
      {"run", edge_.run},
      {"codec", options_.codec},
      {"store", options_.store},
      {"messages", messages_},
      {"forward", traffic_json(sums_.forward)},
      {"backward", traffic_json(sums_.backward)},
      {"changes", traffic_json(sums_.changes)},
      {"first_visits", sums_.first_visits},
      {"later_visits", sums_.later_visits},
      {"beyond_budget", sums_.beyond_budget},
      {"pieces", sizes}}.dump();
  const std::string length = word_of(head.size());
  std::vector<std::string_view> pieces{length, head};
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  const std::string sum = word_of(sum_of_pieces(pieces));
  pieces.push_back(sum);
  write_file_atomically(path, pieces);
}

void ActivationCodec::load(const std::filesystem::path& path) {
  const MappedFile file(path, "activations");
  const auto damaged = [&] {
    return DataError(
        "{} is damaged: its bytes do not have the checksum it was saved with; resume from an older "
        "checkpoint",
        path.string());
  };
  const std::string_view bytes = file.bytes();
  if (bytes.size() < 2 * kWord || word_in(bytes) > bytes.size() - 2 * kWord) throw damaged();
  const std::string_view text = bytes.substr(kWord, word_in(bytes));
  const json head = json::parse(text, nullptr, false);
  if (!head.is_object() || !head.contains("pieces")) throw damaged();
  try {
    std::vector<std::string_view> pieces{bytes.substr(0, kWord), text};
    size_t at = kWord + text.size();
    for (const json& each : head.at("pieces")) {
      const auto size = each.get<size_t>();
      if (size > bytes.size() - kWord - at) throw damaged();
      pieces.push_back(bytes.substr(at, size));
      at += size;
    }
    if (at + kWord != bytes.size() || word_in(bytes.substr(at)) != sum_of_pieces(pieces)) throw damaged();
    if (head.at("run").get<uint64_t>() != edge_.run) {
      throw DataError("{} belongs to another run: resume with the checkpoint of this one", path.string());
    }
    const auto codec = head.at("codec").get<std::string>(), store = head.at("store").get<std::string>();
    if (codec != options_.codec || (codec == "ac-sgd" && store != options_.store)) {
      throw DataError(
          "{} was saved with the activation codec {} and buffers in {}, but this run has {} and {}: resume "
          "with the same ones",
          path.string(), codec, store, options_.codec, options_.store);
    }
    ActivationSums sums;
    sums.forward = traffic_in(head.at("forward"));
    sums.backward = traffic_in(head.at("backward"));
    sums.changes = traffic_in(head.at("changes"));
    sums.first_visits = head.at("first_visits").get<int64_t>();
    sums.later_visits = head.at("later_visits").get<int64_t>();
    sums.beyond_budget = head.at("beyond_budget").get<int64_t>();
    const auto messages = head.at("messages").get<uint64_t>();
    keep(bytes.substr(kWord + text.size(), at - kWord - text.size()));
    sums_ = sums;
    messages_ = messages;
  } catch (const json::exception&) {
    throw damaged();
  }
}

}  // namespace syncopate::parallel
