#include "syncopate/parallel/pipeline/ac_sgd.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_set>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::parallel {
namespace {

template <typename Byte>
std::span<Byte> cut_off(std::span<Byte>& left, int64_t size) {
  const std::span<Byte> front = left.first(static_cast<size_t>(size));
  left = left.subspan(front.size());
  return front;
}

}  // namespace

AcSgd::AcSgd(const ActivationOptions& options, const ActivationEdge& edge, const Formats& formats)
    : RowCodec(options, edge, formats),
      bits_(options.forward_bits, options.rounding == "stochastic"),
      buffer_(options, edge) {}

AcSgd::Plan AcSgd::plan(const at::Tensor& like, const tensor::Batch& batch) {
  Plan plan{.ids = batch.ids, .rows = real_rows(like, batch), .turns = {}};
  const int64_t channels = plan.rows.channels;
  std::vector<int64_t> sizes;
  for (const auto& example : plan.rows.examples) sizes.push_back(example.rows);
  buffer_.check_room(sizes, channels);
  const std::vector<uint64_t> hashes =
      options_.same_content ? contents(batch) : std::vector<uint64_t>(plan.ids.size(), 0);
  std::unordered_set<int64_t> fresh;  // in this batch: not there yet for an example that it holds twice
  for (size_t i = 0; i < plan.ids.size(); ++i) {
    const RealRows::Example& example = plan.rows.examples[i];
    Turn& turn = plan.turns.emplace_back();
    if (example.rows == 0) continue;
    const auto [place, first] = buffer_.visit(plan.ids[i], hashes[i], example.rows, channels);
    const bool room = place->offset >= 0;
    if (first) fresh.insert(place->id);
    turn = {.place = place, .change = room && !fresh.contains(place->id), .remember = room && first};
    sums_.first_visits += turn.remember ? 1 : 0;
    sums_.later_visits += turn.change ? 1 : 0;
    sums_.beyond_budget += room ? 0 : 1;
    (turn.change ? plan.changes : plan.values) = true;
    for (const RealRows::Run& run : example.runs) {
      const int64_t count = run.rows * channels;
      plan.bytes += turn.change ? bits_.packed_bytes(count) : formats_.forward.run_bytes(count);
    }
  }
  if (plan.changes) plan.bytes += codec::ActivationBits::step_bytes(channels);
  if (plan.values) plan.bytes += formats_.forward.head_bytes(channels);
  return plan;
}

std::vector<float*> AcSgd::recall(const Plan& plan) {
  std::vector<float*> memories(plan.turns.size(), nullptr);
  size_t needed = 0, used = 0;
  for (size_t i = 0; i < memories.size(); ++i) {
    if (!plan.turns[i].change) continue;
    memories[i] = buffer_.values(*plan.turns[i].place);
    if (memories[i] == nullptr) needed += static_cast<size_t>(plan.turns[i].place->rows * plan.rows.channels);
  }
  if (needed > scratch_.size()) scratch_.resize(needed);
  for (size_t i = 0; i < memories.size(); ++i) {
    if (!plan.turns[i].change || memories[i] != nullptr) continue;
    memories[i] = scratch_.data() + used;
    used += static_cast<size_t>(plan.turns[i].place->rows * plan.rows.channels);
    buffer_.read(*plan.turns[i].place, memories[i]);
  }
  return memories;
}

float* AcSgd::room_for(const ActivationBuffer::Place& place, int64_t channels) {
  if (float* const values = buffer_.values(place); values != nullptr) return values;
  received_.resize(static_cast<size_t>(place.rows * channels));
  return received_.data();
}

void AcSgd::settle(const Turn& turn, float* values, int64_t channels) {
  const int64_t count = turn.place->rows * channels;
  // Zeros stand in for what is not finite: the next visit's change is then the example itself.
  if (turn.remember && !codec::kernels::kernels().finite(values, count)) std::fill_n(values, count, 0.0f);
  if (values != buffer_.values(*turn.place)) buffer_.write(*turn.place, values);
}

at::Tensor AcSgd::pack(const at::Tensor& hidden, const tensor::Batch& batch) {
  const at::NoGradGuard no_grad;
  const Plan plan = this->plan(hidden, batch);
  const at::Tensor message = empty_message(plan.bytes);
  if (plan.bytes == 0) return message;
  const int64_t channels = plan.rows.channels;
  const at::Tensor matrix = as_matrix(hidden.detach());
  const float* const data = matrix.data_ptr<float>();
  const std::vector<float*> memories = recall(plan);
  std::vector<codec::MatrixRows> changes, values;
  for (size_t i = 0; i < plan.turns.size(); ++i) {
    const float* memory = memories[i];
    for (const RealRows::Run& run : plan.rows.examples[i].runs) {
      (memory != nullptr ? changes : values).push_back({data + run.first * channels, run.rows, memory});
      if (memory != nullptr) memory += run.rows * channels;
    }
  }
  std::span<uint8_t> left = bytes_of_message(message);
  codec::ChannelSteps change_steps, value_steps;
  if (plan.changes) {
    change_steps =
        bits_.measure(changes, channels, cut_off(left, codec::ActivationBits::step_bytes(channels)));
  }
  if (plan.values) {
    value_steps =
        formats_.forward.measure(values, channels, cut_off(left, formats_.forward.head_bytes(channels)));
  }
  const uint64_t key = mix_key(edge_.seed, 0, messages_++);
  codec::SquaredError of_changes, of_values;
  int64_t change_bytes = plan.changes ? codec::ActivationBits::step_bytes(channels) : 0, changed = 0;
  size_t change = 0, value = 0;
  for (size_t i = 0; i < plan.turns.size(); ++i) {
    const Turn& turn = plan.turns[i];
    float* into = turn.change     ? (change_steps.finite() ? memories[i] : nullptr)
                  : turn.remember ? room_for(*turn.place, channels)
                                  : nullptr;
    float* const whole = into;
    for (const RealRows::Run& run : plan.rows.examples[i].runs) {
      const int64_t count = run.rows * channels;
      if (turn.change) {
        const codec::MatrixRows& piece = changes[change++];
        const std::span<uint8_t> codes = cut_off(left, bits_.packed_bytes(count));
        of_changes += bits_.encode(piece, change_steps, mix_key(key, change), codes, into);
        change_bytes += std::ssize(codes);
        changed += count;
      } else {
        const codec::MatrixRows& piece = values[value++];
        of_values += formats_.forward.encode({piece.values, static_cast<size_t>(count)}, value_steps, 0,
                                             cut_off(left, formats_.forward.run_bytes(count)), into);
      }
      if (into != nullptr) into += count;
    }
    if (whole != nullptr) settle(turn, whole, channels);
  }
  count_sent(sums_.changes, changed, change_bytes, of_changes);
  count_sent(sums_.forward, changed, change_bytes, of_changes);
  count_sent(sums_.forward, plan.rows.rows * channels - changed, plan.bytes - change_bytes, of_values);
  return message;
}

at::Tensor AcSgd::expect(const at::Tensor& like, const tensor::Batch& batch) {
  expected_.push_back(plan(like, batch));
  return empty_message(expected_.back().bytes);
}

at::Tensor AcSgd::unpack(const at::Tensor& message, const at::Tensor& like, const tensor::Batch& batch) {
  const at::NoGradGuard no_grad;
  check(!expected_.empty() && expected_.front().ids == batch.ids,
        "batches are unpacked in the order they are expected");
  const Plan plan = std::move(expected_.front());
  expected_.pop_front();
  check(message.numel() == plan.bytes, "a message of the size that was expected");
  const int64_t channels = plan.rows.channels;
  const at::Tensor matrix = empty_matrix(plan.rows);
  if (plan.bytes == 0) return from_matrix(matrix, like);
  float* const data = matrix.data_ptr<float>();
  const std::vector<float*> memories = recall(plan);
  std::span<const uint8_t> left = bytes_of_message(message);
  codec::ChannelSteps change_steps, value_steps;
  if (plan.changes) change_steps = bits_.read(cut_off(left, codec::ActivationBits::step_bytes(channels)));
  if (plan.values) {
    value_steps = formats_.forward.read(cut_off(left, formats_.forward.head_bytes(channels)), channels);
  }
  for (size_t i = 0; i < plan.turns.size(); ++i) {
    const Turn& turn = plan.turns[i];
    float* memory = turn.remember ? room_for(*turn.place, channels) : memories[i];
    float* const whole = memory;
    for (const RealRows::Run& run : plan.rows.examples[i].runs) {
      const int64_t count = run.rows * channels;
      const std::span<float> into(data + run.first * channels, static_cast<size_t>(count));
      if (turn.change) {
        bits_.decode(cut_off(left, bits_.packed_bytes(count)), change_steps, into, memory,
                     change_steps.finite() ? memory : nullptr);
      } else {
        formats_.forward.decode(cut_off(left, formats_.forward.run_bytes(count)), value_steps, into);
        if (turn.remember) std::copy(into.begin(), into.end(), memory);
      }
      if (memory != nullptr) memory += count;
    }
    if (turn.remember || (turn.change && change_steps.finite())) settle(turn, whole, channels);
  }
  return from_matrix(matrix, like);
}

ActivationSums AcSgd::sums() const {
  ActivationSums sums = sums_;
  sums.buffer_bytes = buffer_.used_bytes();
  sums.examples_kept = buffer_.examples_kept();
  sums.examples_beyond = buffer_.examples_beyond();
  return sums;
}

std::vector<std::string_view> AcSgd::kept() const {
  check(expected_.empty(), "activations are saved between messages");
  return buffer_.pieces();
}

void AcSgd::keep(std::string_view bytes) {
  check(expected_.empty(), "activations are loaded between messages");
  buffer_.restore(bytes);
}

}  // namespace syncopate::parallel
