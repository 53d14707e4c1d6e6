#pragma once

#include "syncopate/parallel/pipeline/activation_codec.h"
#include "syncopate/parallel/pipeline/real_rows.h"
#include "syncopate/parallel/pipeline/row_format.h"

namespace syncopate::parallel {

/// fp16 and direct: values themselves, forwards and backwards.
class RowCodec : public ActivationCodec {
 public:
  struct Formats {
    RowFormat forward, backward, once;
  };
  RowCodec(const ActivationOptions& options, const ActivationEdge& edge, const Formats& formats)
      : ActivationCodec(options, edge), formats_(formats) {}

  at::Tensor pack(const at::Tensor& hidden, const tensor::Batch& batch) override;
  at::Tensor expect(const at::Tensor& like, const tensor::Batch& batch) override;
  at::Tensor unpack(const at::Tensor& message, const at::Tensor& like, const tensor::Batch& batch) override;
  at::Tensor pack_gradient(const at::Tensor& gradient, const tensor::Batch& batch) override;
  at::Tensor expect_gradient(const at::Tensor& like, const tensor::Batch& batch) const override;
  at::Tensor unpack_gradient(const at::Tensor& message, const at::Tensor& like,
                             const tensor::Batch& batch) const override;
  at::Tensor pack_once(const at::Tensor& hidden, const tensor::Batch& batch) const override;
  at::Tensor expect_once(const at::Tensor& like, const tensor::Batch& batch) const override;
  at::Tensor unpack_once(const at::Tensor& message, const at::Tensor& like,
                         const tensor::Batch& batch) const override;

 protected:
  Formats formats_;
};

/// Bytes to send or to receive.
at::Tensor empty_message(int64_t bytes);
std::span<uint8_t> bytes_of_message(const at::Tensor& message);
/// What arrives: a matrix for all rows, zeros where there is padding.
at::Tensor empty_matrix(const RealRows& rows);
/// Adds what was sent; what is not finite is left out of the error.
void count_sent(ActivationTraffic& traffic, int64_t values, int64_t bytes, const codec::SquaredError& error);

}  // namespace syncopate::parallel
