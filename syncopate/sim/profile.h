#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

// What a step of a model costs on one device, measured: everything that a prediction knows of a model.
namespace syncopate::sim {

/// One parameter tensor, in the order in which gradients become ready.
struct ParameterProfile {
  std::string name{};
  std::vector<int64_t> shape{};
  double ready =
      std::numeric_limits<double>::quiet_NaN();  ///< when: a share of the backward pass; NaN: not known
  double rows =
      0;  ///< of an embedding table exchanged by rows: rows that an example of the batch adds; 0: dense
  int64_t layer = -1;  ///< of Profile::layers; -1: not known
  int64_t elements() const;
};

/// A step on batches of one size: examples per worker, all micro-batches together.
struct BatchTime {
  int64_t batch = 0;
  double forward_s = 0, backward_s = 0, update_s = 0;
  double data_s = 0;        ///< waiting for the loader
  double other_s = 0;       ///< what a step costs beside these
  int64_t peak_memory = 0;  ///< bytes of the process; 0: not known
};

/// A stretch of the model that a pipeline may not cut, in the order of the forward pass: a block, the first
/// one with what comes before it, the last one with what comes behind it.
struct LayerProfile {
  std::string name{};
  double share = 0;             ///< of the time of forward and backward
  int64_t parameters = 0;       ///< elements
  double output_bytes = 0;      ///< fp32, per example, padding included: what a cut behind it would send
  int64_t channels = 0;         ///< of these: a row has so many numbers; 0: not known
  double activation_bytes = 0;  ///< per example, kept for the backward pass; 0: not known
};

/// How fast a codec packs and unpacks here: seconds per element of the gradient.
struct CodecSpeed {
  std::string name{};
  double encode_s = 0, decode_s = 0;
};

/// What collectives cost on this machine beside links: loopback between two processes.
struct LocalCosts {
  double operation_s = 0;     ///< to start and end one exchange of no size between two ranks
  double loopback_gbyte = 0;  ///< gigabytes a second from one process to another here
  double reduce_gbyte = 0;    ///< summing: gigabytes a second of input
  double copy_gbyte = 0;
};

/// Of one of these rates: bytes a second. What is not known, 0, costs no time.
double bytes_per_s(double gbyte);

struct Profile {
  std::string task{}, model{}, optimizer{}, precision = "fp32", device = "cpu", cpu{};
  int64_t max_length = 0;
  int64_t workers = 1;  ///< that computed at the same time on that machine
  int64_t threads = 1;  ///< of each
  int64_t cores = 0;
  std::vector<BatchTime> times{};  ///< ascending
  std::vector<ParameterProfile> parameters{};
  std::vector<LayerProfile> layers{};
  std::vector<CodecSpeed> codecs{};
  LocalCosts local{};
  double training_examples = 0;  ///< in an epoch; 0: not known
  double real_share = 1;         ///< of the rows (tokens) that a cut would send: the rest is padding
  double tied_bytes = 0;         ///< tables of the first layer that the last one reads, too

  int64_t elements() const;
  /// A step at any batch size: between the measured ones, and beyond them, on straight lines.
  BatchTime at(double batch) const;
};

nlohmann::ordered_json to_json(const Profile& profile);
Profile profile_from_json(const nlohmann::ordered_json& json);
Profile read_profile(const std::filesystem::path& file);  ///< throws DataError
void write_profile(const std::filesystem::path& file, const Profile& profile);

}  // namespace syncopate::sim
