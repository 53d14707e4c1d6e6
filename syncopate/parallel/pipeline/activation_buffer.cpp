#include "syncopate/parallel/pipeline/activation_buffer.h"

#include <algorithm>
#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"

namespace syncopate::parallel {
namespace {

constexpr double kGib = 0x1p30;

/// Precedes the places in what is saved.
struct TableHead {
  int64_t places, channels, used;
};

}  // namespace

ActivationBuffer::ActivationBuffer(const ActivationOptions& options, const ActivationEdge& edge)
    : options_(options) {
  if (options.store == "int8") bits_.emplace(8);
  if (options.store == "int4") bits_.emplace(4);
  const auto capacity = static_cast<size_t>(options.buffer_gib * kGib);
  if (options.buffer == "file") {
    memory_ =
        std::make_unique<BufferMemory>(options.folder / (edge.name + ".activations"), capacity, edge.run);
  } else {
    memory_ = std::make_unique<BufferMemory>(capacity);
  }
}

size_t ActivationBuffer::bytes_of(int64_t rows, int64_t channels) const {
  const int64_t count = rows * channels;
  if (bits_)
    return static_cast<size_t>(codec::ActivationBits::step_bytes(channels) + bits_->packed_bytes(count));
  return static_cast<size_t>(options_.store == "fp16" ? 2 * count : 4 * count);
}

void ActivationBuffer::check_room(std::span<const int64_t> rows, int64_t channels) const {
  size_t needed = 0;
  for (const int64_t each : rows) needed += BufferMemory::rounded(bytes_of(each, channels));
  // Later batches may be larger: what there is no room for is sent as on a first visit.
  if (kept_ > 0 || needed <= memory_->capacity()) return;
  throw ConfigError(
      "activation.buffer_gib is {:.4g}, but the activations of one micro-batch of {} examples take {:.4g} "
      "GiB in {}: raise "
      "it, or choose a smaller store or batch",
      options_.buffer_gib, rows.size(), static_cast<double>(needed) / kGib, options_.store);
}

ActivationBuffer::Visit ActivationBuffer::visit(int64_t id, uint64_t content, int64_t rows,
                                                int64_t channels) {
  check(channels_ == 0 || channels_ == channels, "an edge has one number of channels");
  channels_ = channels;
  const auto [found, first] = places_.try_emplace(id);
  Place& place = found->second;
  if (first) {
    const auto offset = memory_->take(bytes_of(rows, channels));
    place = {id, content, rows, offset ? static_cast<int64_t>(*offset) : -1};
    if (offset) ++kept_;
  } else if (place.rows != rows || (options_.same_content && place.content != content)) {
    throw DataError(
        "example {} came back with another content: ac-sgd remembers examples by their ids, which must "
        "stay those of the same text or image; use the codec direct where they change",
        id);
  }
  return {&place, first};
}

float* ActivationBuffer::values(const Place& place) {
  return options_.store == "fp32" ? reinterpret_cast<float*>(memory_->data() + place.offset) : nullptr;
}

void ActivationBuffer::read(const Place& place, float* into) const {
  const int64_t count = place.rows * channels_;
  const auto* const from = reinterpret_cast<const uint8_t*>(memory_->data() + place.offset);
  if (bits_) {
    const auto steps = static_cast<size_t>(codec::ActivationBits::step_bytes(channels_));
    bits_->decode({from + steps, static_cast<size_t>(bits_->packed_bytes(count))}, bits_->read({from, steps}),
                  {into, static_cast<size_t>(count)});
  } else if (options_.store == "fp16") {
    codec::kernels::kernels().fp16.decode(from, into, count);
  } else {
    std::memcpy(into, from, bytes_of(place.rows, channels_));
  }
}

void ActivationBuffer::write(const Place& place, const float* from) {
  const int64_t count = place.rows * channels_;
  auto* const into = reinterpret_cast<uint8_t*>(memory_->data() + place.offset);
  if (bits_) {
    const auto steps = static_cast<size_t>(codec::ActivationBits::step_bytes(channels_));
    const codec::MatrixRows rows{from, place.rows};
    bits_->encode(rows, bits_->measure({&rows, 1}, channels_, {into, steps}), 0,
                  {into + steps, static_cast<size_t>(bits_->packed_bytes(count))});
  } else if (options_.store == "fp16") {
    codec::kernels::kernels().fp16.encode(from, into, count);
  } else {
    std::memcpy(into, from, bytes_of(place.rows, channels_));
  }
}

void ActivationBuffer::read_ahead(std::span<const int64_t> ids) const {
  for (const int64_t id : ids) {
    const auto found = places_.find(id);
    if (found == places_.end() || found->second.offset < 0) continue;
    memory_->read_ahead(static_cast<size_t>(found->second.offset), bytes_of(found->second.rows, channels_));
  }
}

void ActivationBuffer::write_table() const {
  std::vector<Place> places;
  places.reserve(places_.size());
  for (const auto& [id, place] : places_) places.push_back(place);
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.id < b.id; });
  const TableHead head{static_cast<int64_t>(places.size()), channels_, used_bytes()};
  table_.assign(reinterpret_cast<const char*>(&head), sizeof head);
  table_.append(reinterpret_cast<const char*>(places.data()), places.size() * sizeof(Place));
}

std::vector<std::string_view> ActivationBuffer::pieces() const {
  write_table();
  return {table_, {memory_->data(), memory_->used()}};
}

uint64_t ActivationBuffer::digest() const {
  uint64_t sum = 0;
  for (const std::string_view piece : pieces()) sum = checksum(piece, sum);
  return sum;
}

void ActivationBuffer::restore(std::string_view bytes) {
  const auto damaged = [] { return DataError("the saved activations are damaged: save them again"); };
  TableHead head{};
  if (bytes.size() < sizeof head) throw damaged();
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  const auto places = static_cast<size_t>(head.places), used = static_cast<size_t>(head.used);
  if (head.places < 0 || head.used < 0 || places > bytes.size() / sizeof(Place) ||
      bytes.size() - places * sizeof(Place) != used) {
    throw damaged();
  }
  if (used > memory_->capacity()) {
    throw ConfigError("activation.buffer_gib is {:.4g}, but the saved activations take {:.4g} GiB: raise it",
                      options_.buffer_gib, static_cast<double>(used) / kGib);
  }
  std::unordered_map<int64_t, Place> loaded;
  int64_t kept = 0;
  for (size_t i = 0; i < places; ++i) {
    Place place;
    std::memcpy(&place, bytes.data() + i * sizeof place, sizeof place);
    const bool here = place.offset >= 0;
    if (place.rows < 0 ||
        (here && (place.offset > head.used ||
                  bytes_of(place.rows, head.channels) > used - static_cast<size_t>(place.offset)))) {
      throw damaged();
    }
    kept += here ? 1 : 0;
    loaded.emplace(place.id, place);
  }
  memory_->clear();
  memory_->take(used);
  std::memcpy(memory_->data(), bytes.data() + places * sizeof(Place), used);
  places_ = std::move(loaded);
  channels_ = head.channels;
  kept_ = kept;
}

}  // namespace syncopate::parallel
