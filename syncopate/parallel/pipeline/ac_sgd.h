#pragma once

#include <deque>

#include "syncopate/parallel/pipeline/activation_buffer.h"
#include "syncopate/parallel/pipeline/row_codec.h"

namespace syncopate::parallel {

/// AC-SGD (Wang et al., 2022), also AQ-SGD: both ends remember what the receiver has of each example, and
/// what travels is the quantised change against it. On its first visit an example travels itself. Gradients
/// are quantised directly.
///
/// A message: the steps of all changes, the steps of first visits (int8), then example by example.
/// The receiver computes with memory + change; where the store is not fp32, both ends round that alike to
/// remember it.
class AcSgd : public RowCodec {
 public:
  AcSgd(const ActivationOptions& options, const ActivationEdge& edge, const Formats& formats);

  at::Tensor pack(const at::Tensor& hidden, const tensor::Batch& batch) override;
  at::Tensor expect(const at::Tensor& like, const tensor::Batch& batch) override;
  at::Tensor unpack(const at::Tensor& message, const at::Tensor& like, const tensor::Batch& batch) override;
  void prefetch(std::span<const int64_t> ids) override { buffer_.read_ahead(ids); }
  ActivationSums sums() const override;
  uint64_t digest() const override { return buffer_.digest(); }

 protected:
  std::vector<std::string_view> kept() const override;
  void keep(std::string_view bytes) override;

 private:
  /// What becomes of an example: known from the batch alone.
  struct Turn {
    const ActivationBuffer::Place* place = nullptr;
    bool change = false;    ///< against what is remembered, or the values themselves
    bool remember = false;  ///< of the values themselves: from now on
  };
  struct Plan {
    std::vector<int64_t> ids;
    RealRows rows;
    std::vector<Turn> turns;  ///< one for each example
    bool changes = false, values = false;
    int64_t bytes = 0;
  };
  Plan plan(const at::Tensor& like, const tensor::Batch& batch);
  /// What is remembered of the examples that change: in the buffer itself, or read into `scratch_`. By
  /// example.
  std::vector<float*> recall(const Plan& plan);
  /// Where values go that are remembered from now on: the buffer itself, or `received_`.
  float* room_for(const ActivationBuffer::Place& place, int64_t channels);
  /// The receiver's values are as they are remembered.
  void settle(const Turn& turn, float* values, int64_t channels);

  codec::ActivationBits bits_;
  ActivationBuffer buffer_;
  std::deque<Plan> expected_;
  std::vector<float> scratch_, received_;
};

}  // namespace syncopate::parallel
