#include "syncopate/parallel/pipeline/row_codec.h"

#include <ATen/ATen.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::parallel {
namespace {

int64_t message_bytes(const RowFormat& format, const RealRows& rows) {
  if (rows.rows == 0) return 0;
  int64_t bytes = format.head_bytes(rows.channels);
  for (const auto& example : rows.examples) {
    for (const auto& run : example.runs) bytes += format.run_bytes(run.rows * rows.channels);
  }
  return bytes;
}

at::Tensor empty_for(const RowFormat& format, const at::Tensor& like, const tensor::Batch& batch) {
  return empty_message(message_bytes(format, real_rows(like, batch)));
}

at::Tensor pack_rows(const RowFormat& format, const at::Tensor& values, const tensor::Batch& batch,
                     uint64_t key, ActivationTraffic* traffic) {
  const at::NoGradGuard no_grad;
  const RealRows rows = real_rows(values, batch);
  const at::Tensor message = empty_message(message_bytes(format, rows));
  if (message.numel() == 0) return message;
  const at::Tensor matrix = as_matrix(values.detach());
  const float* const data = matrix.data_ptr<float>();
  std::vector<codec::MatrixRows> runs;
  for (const auto& example : rows.examples) {
    for (const auto& run : example.runs) runs.push_back({data + run.first * rows.channels, run.rows});
  }
  std::span<uint8_t> left = bytes_of_message(message);
  const auto head = static_cast<size_t>(format.head_bytes(rows.channels));
  const codec::ChannelSteps steps = format.measure(runs, rows.channels, left.first(head));
  left = left.subspan(head);
  codec::SquaredError sums;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto count = static_cast<size_t>(runs[i].rows * rows.channels);
    const auto size = static_cast<size_t>(format.run_bytes(runs[i].rows * rows.channels));
    sums += format.encode({runs[i].values, count}, steps, mix_key(key, i), left.first(size));
    left = left.subspan(size);
  }
  if (traffic != nullptr) count_sent(*traffic, rows.rows * rows.channels, message.numel(), sums);
  return message;
}

at::Tensor unpack_rows(const RowFormat& format, const at::Tensor& message, const at::Tensor& like,
                       const tensor::Batch& batch) {
  const at::NoGradGuard no_grad;
  const RealRows rows = real_rows(like, batch);
  check(message.numel() == message_bytes(format, rows), "a message of the size that was expected");
  const at::Tensor matrix = empty_matrix(rows);
  if (message.numel() == 0) return from_matrix(matrix, like);
  std::span<const uint8_t> left = bytes_of_message(message);
  const auto head = static_cast<size_t>(format.head_bytes(rows.channels));
  const codec::ChannelSteps steps = format.read(left.first(head), rows.channels);
  left = left.subspan(head);
  float* const data = matrix.data_ptr<float>();
  for (const auto& example : rows.examples) {
    for (const auto& run : example.runs) {
      const int64_t count = run.rows * rows.channels;
      const auto size = static_cast<size_t>(format.run_bytes(count));
      format.decode(left.first(size), steps, {data + run.first * rows.channels, static_cast<size_t>(count)});
      left = left.subspan(size);
    }
  }
  return from_matrix(matrix, like);
}

}  // namespace

at::Tensor empty_message(int64_t bytes) { return at::empty({bytes}, at::TensorOptions().dtype(at::kByte)); }

std::span<uint8_t> bytes_of_message(const at::Tensor& message) {
  check(message.scalar_type() == at::kByte && message.is_contiguous() && message.is_cpu(),
        "a message is bytes");
  return {message.data_ptr<uint8_t>(), static_cast<size_t>(message.numel())};
}

at::Tensor empty_matrix(const RealRows& rows) {
  const bool padded = rows.rows != rows.all_rows;
  const at::Tensor matrix = at::empty({rows.all_rows, rows.channels}, at::kFloat);
  return padded ? matrix.zero_() : matrix;
}

void count_sent(ActivationTraffic& traffic, int64_t values, int64_t bytes, const codec::SquaredError& error) {
  traffic.values += values;
  traffic.bits += 8 * bytes;
  if (!std::isfinite(error.error) || !std::isfinite(error.meant)) return;
  traffic.error += error.error;
  traffic.meant += error.meant;
  traffic.change += error.change;
}

at::Tensor RowCodec::pack(const at::Tensor& hidden, const tensor::Batch& batch) {
  return pack_rows(formats_.forward, hidden, batch, mix_key(edge_.seed, 0, messages_++), &sums_.forward);
}

at::Tensor RowCodec::expect(const at::Tensor& like, const tensor::Batch& batch) {
  return empty_for(formats_.forward, like, batch);
}

at::Tensor RowCodec::unpack(const at::Tensor& message, const at::Tensor& like, const tensor::Batch& batch) {
  return unpack_rows(formats_.forward, message, like, batch);
}

at::Tensor RowCodec::pack_gradient(const at::Tensor& gradient, const tensor::Batch& batch) {
  return pack_rows(formats_.backward, gradient, batch, mix_key(edge_.seed, 1, messages_++), &sums_.backward);
}

at::Tensor RowCodec::expect_gradient(const at::Tensor& like, const tensor::Batch& batch) const {
  return empty_for(formats_.backward, like, batch);
}

at::Tensor RowCodec::unpack_gradient(const at::Tensor& message, const at::Tensor& like,
                                     const tensor::Batch& batch) const {
  return unpack_rows(formats_.backward, message, like, batch);
}

at::Tensor RowCodec::pack_once(const at::Tensor& hidden, const tensor::Batch& batch) const {
  return pack_rows(formats_.once, hidden, batch, 0, nullptr);
}

at::Tensor RowCodec::expect_once(const at::Tensor& like, const tensor::Batch& batch) const {
  return empty_for(formats_.once, like, batch);
}

at::Tensor RowCodec::unpack_once(const at::Tensor& message, const at::Tensor& like,
                                 const tensor::Batch& batch) const {
  return unpack_rows(formats_.once, message, like, batch);
}

}  // namespace syncopate::parallel
