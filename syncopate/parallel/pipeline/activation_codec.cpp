#include "syncopate/parallel/pipeline/activation_codec.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/parallel/pipeline/ac_sgd.h"
#include "syncopate/parallel/pipeline/real_rows.h"
#include "syncopate/parallel/pipeline/row_codec.h"

namespace syncopate::parallel {
namespace {

/// The tensor itself. Images travel pixel by pixel, as they lie in memory with channels last.
class Uncoded : public ActivationCodec {
 public:
  using ActivationCodec::ActivationCodec;

  at::Tensor pack(const at::Tensor& hidden, const tensor::Batch&) override {
    return sent(hidden, sums_.forward);
  }
  at::Tensor expect(const at::Tensor& like, const tensor::Batch&) override { return expected(like); }
  at::Tensor unpack(const at::Tensor& message, const at::Tensor& like, const tensor::Batch&) override {
    return received(message, like);
  }
  at::Tensor pack_gradient(const at::Tensor& gradient, const tensor::Batch&) override {
    return sent(gradient, sums_.backward);
  }
  at::Tensor expect_gradient(const at::Tensor& like, const tensor::Batch&) const override {
    return expected(like);
  }
  at::Tensor unpack_gradient(const at::Tensor& message, const at::Tensor& like,
                             const tensor::Batch&) const override {
    return received(message, like);
  }
  at::Tensor pack_once(const at::Tensor& hidden, const tensor::Batch&) const override {
    return laid_out(hidden);
  }
  at::Tensor expect_once(const at::Tensor& like, const tensor::Batch&) const override {
    return expected(like);
  }
  at::Tensor unpack_once(const at::Tensor& message, const at::Tensor& like,
                         const tensor::Batch&) const override {
    return received(message, like);
  }

 private:
  static at::Tensor laid_out(const at::Tensor& hidden) {
    const at::NoGradGuard no_grad;
    const at::Tensor values = hidden.detach();
    return (values.dim() == 4 ? values.permute({0, 2, 3, 1}) : values).contiguous();
  }

  static at::Tensor sent(const at::Tensor& hidden, ActivationTraffic& traffic) {
    const at::Tensor message = laid_out(hidden);
    traffic.values += message.numel();
    traffic.bits += 8 * static_cast<int64_t>(message.nbytes());
    return message;
  }

  static at::Tensor expected(const at::Tensor& like) {
    if (like.dim() != 4) return at::empty(like.sizes(), like.options());
    return at::empty({like.size(0), like.size(2), like.size(3), like.size(1)}, like.options());
  }

  static at::Tensor received(const at::Tensor& message, const at::Tensor& like) {
    return like.dim() == 4 ? from_matrix(message, like) : message;
  }
};

void check_choice(const char* option, const std::string& value, const std::vector<std::string>& known) {
  for (const std::string& each : known) {
    if (value == each) return;
  }
  throw ConfigError("unknown {} \"{}\"{}; choose one of {}", option, value, suggestion(value, known),
                    fmt::join(known, ", "));
}

void check_bits(const char* option, int bits) {
  if (bits < 1 || bits > 8) throw ConfigError("{} must be from 1 to 8, got {}", option, bits);
}

void check_activation_options(const ActivationOptions& options) {
  check_choice("activation codec", options.codec, activation_codec_names());
  check_bits("forward_bits", options.forward_bits);
  check_bits("backward_bits", options.backward_bits);
  check_choice("rounding", options.rounding, {"nearest", "stochastic"});
  check_choice("first_visit", options.first_visit, {"full", "half", "int8"});
  check_choice("buffer", options.buffer, {"memory", "file"});
  check_choice("store", options.store, {"fp32", "fp16", "int8", "int4"});
  if (!(options.buffer_gib > 0) || options.buffer_gib > 0x1p20) {
    throw ConfigError("buffer_gib must be above 0 and at most 1048576, got {}", options.buffer_gib);
  }
}

RowFormat first_format(const std::string& name) {
  return name == "full" ? RowFormat::full() : name == "half" ? RowFormat::half() : RowFormat::few_bits(8);
}

}  // namespace

double ActivationTraffic::bits_per_value() const {
  return values == 0 ? 0 : static_cast<double>(bits) / static_cast<double>(values);
}

double ActivationTraffic::relative_error() const { return meant > 0 ? std::sqrt(error / meant) : 0; }

double ActivationTraffic::relative_change() const { return meant > 0 ? std::sqrt(change / meant) : 0; }

ActivationCodec::ActivationCodec(const ActivationOptions& options, const ActivationEdge& edge)
    : options_(options), edge_(edge) {}

ActivationCodec::~ActivationCodec() = default;

const std::vector<std::string>& activation_codec_names() {
  static const std::vector<std::string> names{"none", "fp16", "direct", "ac-sgd"};
  return names;
}

std::unique_ptr<ActivationCodec> make_activation_codec(const ActivationOptions& options,
                                                       const ActivationEdge& edge) {
  check_activation_options(options);
  if (options.codec == "none") return std::make_unique<Uncoded>(options, edge);
  const RowFormat half = RowFormat::half();
  if (options.codec == "fp16")
    return std::make_unique<RowCodec>(options, edge, RowCodec::Formats{half, half, half});
  const bool drawn = options.rounding == "stochastic";
  const RowFormat backward = RowFormat::few_bits(options.backward_bits, drawn);
  if (options.codec == "direct") {
    const RowCodec::Formats formats{RowFormat::few_bits(options.forward_bits, drawn), backward,
                                    RowFormat::few_bits(options.forward_bits)};
    return std::make_unique<RowCodec>(options, edge, formats);
  }
  const RowFormat first = first_format(options.first_visit);
  return std::make_unique<AcSgd>(options, edge, RowCodec::Formats{first, backward, first});
}

}  // namespace syncopate::parallel
