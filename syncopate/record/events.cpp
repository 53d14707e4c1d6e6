#include "syncopate/record/events.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>

#include "syncopate/base/file.h"
#include "syncopate/base/process.h"

namespace syncopate::record {
namespace {

constexpr const char* kPrefix = "events.out.tfevents.";

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82F63B78 : crc >> 1;
    table[byte] = crc;
  }
  return table;
}

/// The lowest byte first, as both formats have it.
template <typename Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> 8 * i & 0xFF);
  return bytes;
}

template <typename Unsigned>
Unsigned from_little_endian(std::string_view bytes) {
  Unsigned value = 0;
  for (size_t i = 0; i < sizeof value; ++i)
    value |= static_cast<Unsigned>(static_cast<uint8_t>(bytes[i])) << 8 * i;
  return value;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields of a message: a key (number and wire type), then the value.
std::string field(int number, int64_t value) {
  return varint(static_cast<uint64_t>(number) << 3) + varint(static_cast<uint64_t>(value));
}
std::string field(int number, double value) {
  return varint(static_cast<uint64_t>(number) << 3 | 1) + little_endian(std::bit_cast<uint64_t>(value));
}
std::string field(int number, float value) {
  return varint(static_cast<uint64_t>(number) << 3 | 5) + little_endian(std::bit_cast<uint32_t>(value));
}
std::string field(int number, std::string_view bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

// Event: wall_time 1, step 2, file_version 3, summary 5, session_log 7.
std::string event(double wall_time, int64_t step) {
  return field(1, wall_time) + (step != 0 ? field(2, step) : "");
}

/// Of a message that this file made: the step stands second, or is 0.
int64_t step_of(std::string_view message) {
  constexpr size_t kAt = 9;
  if (message.size() <= kAt || message[kAt] != 2 << 3) return 0;
  uint64_t step = 0;
  for (size_t i = kAt + 1, shift = 0; i < message.size() && shift < 64; ++i, shift += 7) {
    step |= static_cast<uint64_t>(message[i] & 0x7F) << shift;
    if ((message[i] & 0x80) == 0) break;
  }
  return static_cast<int64_t>(step);
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(kPrefix)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8; }

std::string tf_record(std::string_view message) {
  const std::string length = little_endian(static_cast<uint64_t>(message.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(message) +
         little_endian(masked_crc32c(message));
}

std::string version_event(double wall_time) {
  return event(wall_time, 0) + field(3, std::string_view("brain.Event:2"));
}

std::string start_event(double wall_time, int64_t step) {
  constexpr int64_t kStart = 1;  // SessionLog's status 1
  return event(wall_time, step) + field(7, field(1, kStart));
}

std::string scalars_event(double wall_time, int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    // Summary's values are its field 1, with the tag 1 and simple_value 2.
    if (std::isfinite(value))
      summary += field(1, field(1, std::string_view(tag)) + field(2, static_cast<float>(value)));
  }
  return event(wall_time, step) + field(5, summary);
}

Scalars scalars_of(const StepRecord& r) {
  Scalars scalars{{"train/loss", r.loss},
                  {"train/lr", r.lr},
                  {"train/grad_norm", r.grad_norm},
                  {"train/examples_per_s", r.ms > 0 ? 1e3 * static_cast<double>(r.examples) / r.ms : kNan},
                  {"time/step_ms", r.ms},
                  {"time/data_ms", r.data_ms},
                  {"time/compute_ms", r.compute_ms},
                  {"time/exchange_ms", r.exchange_ms},
                  {"time/hidden_ms", r.hidden_ms},
                  {"traffic/bytes_sent", r.bytes_sent}};
  if (r.forward_ms + r.backward_ms + r.optimizer_ms > 0) {  // else they are not known
    scalars.insert(scalars.end(), {{"time/forward_ms", r.forward_ms},
                                   {"time/backward_ms", r.backward_ms},
                                   {"time/optimizer_ms", r.optimizer_ms}});
  }
  return scalars;
}

Scalars scalars_of(const EvalRecord& r) {
  Scalars scalars{{r.split + "/loss", r.loss}};
  for (const auto& [name, value] : r.measures) scalars.emplace_back(r.split + "/" + name, value);
  return scalars;
}

size_t bytes_up_to(std::string_view events, int64_t step) {
  constexpr size_t kHead = 12, kTail = 4;
  size_t at = 0;
  while (events.size() - at >= kHead + kTail) {
    const std::string_view head = events.substr(at, kHead);
    const auto length = from_little_endian<uint64_t>(head);
    if (from_little_endian<uint32_t>(head.substr(8)) != masked_crc32c(head.substr(0, 8))) break;
    if (length > events.size() - at - kHead - kTail) break;
    const std::string_view message = events.substr(at + kHead, length);
    if (from_little_endian<uint32_t>(events.substr(at + kHead + length)) != masked_crc32c(message)) break;
    if (step_of(message) > step) break;
    at += kHead + length + kTail;
  }
  return at;
}

EventFolder::EventFolder(std::filesystem::path folder, std::optional<int64_t> resumes_after) {
  make_folder(folder);
  for (const std::filesystem::path& path : event_files(folder)) {
    std::error_code ignored;
    if (!resumes_after) {
      std::filesystem::remove(path, ignored);
      continue;
    }
    const size_t keep = bytes_up_to(read_file(path, "event file"), *resumes_after);
    std::filesystem::resize_file(path, keep, ignored);
    had_events_ = had_events_ || keep > 0;
  }
  const double now = wall_time();
  const std::string base =
      fmt::format("{}{:010d}.{}.{}", kPrefix, static_cast<int64_t>(now), host_name(), ::getpid());
  std::filesystem::path path = folder / base;
  // TensorBoard reads files in the order of their names.
  for (int number = 1; std::filesystem::exists(path); ++number)
    path = folder / fmt::format("{}.{}", base, number);
  file_ = std::make_unique<AppendFile>(path);
  file_->write(tf_record(version_event(now)));
  if (had_events_) file_->write(tf_record(start_event(now, *resumes_after + 1)));
}

void EventFolder::write(int64_t step, const Scalars& scalars) {
  file_->write(tf_record(scalars_event(wall_time(), step, scalars)));
}

}  // namespace syncopate::record
