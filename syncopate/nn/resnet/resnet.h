#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syncopate/nn/layers/batch_norm.h"
#include "syncopate/nn/layers/layers.h"
#include "syncopate/nn/model.h"
#include "syncopate/nn/resnet/resnet_config.h"

namespace syncopate::nn {

/// A residual network (He et al., 2016) with a stem for small images (one 3x3 convolution, no pooling) and
/// basic blocks, under torchvision's names. Layer 0 is the stem, then one layer for each block, the last one
/// pools and classifies.
///
/// Batches hold "images" [B, C, H, W] (fp32, normalised) and "labels" [B]. A batch may be empty. Images may
/// also be bytes, with "views" [B, 3] of them (nn/layers/show.h): the network then crops, mirrors and
/// normalises them itself, by its config, where it computes.
class ResNet final : public Model {
 public:
  /// Parameters are not yet set: see make_resnet and load_resnet. Throws ConfigError.
  explicit ResNet(const ResNetConfig& config);

  const ResNetConfig& config() const { return config_; }
  void name_labels(std::vector<std::string> names);  ///< as many as there are labels
  void set_label_smoothing(double share);  ///< of the target, spread over all classes; in training alone
  /// Batch norm by the batches of all ranks together from now on (an empty function: by this rank's own).
  void set_sum_over_ranks(SumOverRanks sum) { sum_ = std::move(sum); }
  bool every_rank_computes() const override { return static_cast<bool>(sum_); }
  /// Whether activations keep the channels of a pixel side by side; a matter of speed alone.
  void set_channels_last(bool last) { channels_last_ = last; }

  using Model::buffers;
  using Model::forward;
  using Model::parameters;
  std::vector<tensor::NamedTensor> parameters(LayerRange layers) const override;
  std::vector<tensor::NamedTensor> buffers(LayerRange layers) const override;  ///< the running statistics
  void set_mode(Mode mode) override { mode_ = mode; }
  int depth() const override { return static_cast<int>(blocks_.size()) + 2; }
  at::Tensor empty_hidden(const Batch& batch,
                          int layer) const override;  ///< [B, C, H, W] of the block before
  int64_t count(const Batch& batch) const override;
  /// Logits [B, labels] after the last layer. Throws DataError for images the model does not take.
  at::Tensor forward(at::Tensor hidden_BCHW, const Batch& batch, LayerRange layers) override;
  /// Cross entropy, summed over the images.
  Loss loss(const at::Tensor& logits, const Batch& batch) const override;

  /// Fresh values that depend on `seed` alone: convolutions and head uniform within 1 / sqrt(inputs),
  /// norms 1 and 0. With batch norm a weight's size sets how fast it turns: small ones learn faster.
  void initialize(uint64_t seed);
  void initialize_head(uint64_t seed);  ///< the last linear layer alone

 private:
  /// A convolution without bias and the norm after it.
  struct Unit {
    std::string convolution, norm;  ///< names
    at::Tensor weight_OIKK;
    BatchNormParams params;
    int64_t stride = 1;
  };
  struct Block {
    Unit first, second;
    std::vector<Unit> shortcut;  ///< one where the shape changes
  };

  static Unit unit(std::string convolution, std::string norm, int64_t in, int64_t out, int64_t kernel,
                   int64_t stride);
  std::vector<const Unit*> units(LayerRange layers) const;
  at::MemoryFormat format() const;
  at::Tensor convolve(const Unit& unit, const at::Tensor& x_BCHW) const;
  BatchNormOptions norm_options() const;
  Twice run(const Block& block, const Twice& x_BCHW) const;
  Twice run_stem(const Batch& batch) const;
  at::Tensor shown(const Batch& batch) const;  ///< its images in numbers

  ResNetConfig config_;
  Unit stem_;
  std::vector<Block> blocks_;
  LinearParams head_;
  SumOverRanks sum_;
  Mode mode_;
  double smoothing_ = 0;
  bool channels_last_ = true;
  mutable at::Tensor levels_CL_;  ///< what bytes become, on the device that asked last
};

/// A ResNet with fresh parameters that depend on `seed` alone.
std::unique_ptr<ResNet> make_resnet(const ResNetConfig& config, uint64_t seed);

}  // namespace syncopate::nn
