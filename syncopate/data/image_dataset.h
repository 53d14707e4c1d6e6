#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "syncopate/corpora/images/images.h"
#include "syncopate/data/dataset.h"

namespace syncopate::data {

struct ImageOptions {
  bool augment = false;  ///< crop and flip at random; for training
  int64_t pad = 4;       ///< black pixels around an image, of which a crop of its own size is taken
  bool flip = true;      ///< mirror every other image
  corpora::Normalisation normalisation{};  ///< the training split's, for any split
  /// Batches hold the bytes as they are and how each image is to be shown, for a network that does the rest
  /// on a GPU.
  bool bytes = false;
};

/// Images as a model reads them. The pixels stay bytes and become numbers when a batch is made.
class ImageDataset : public Dataset {
 public:
  enum class Split { kTrain, kTest };

  /// Throws DataError for an empty split and for a label that the task does not know, ConfigError for a
  /// pad that is negative or wider than the images.
  ImageDataset(std::shared_ptr<const corpora::ImageTask> task, Split split, const ImageOptions& options);

  int64_t size() const override { return set_.size(); }

  /// "images" [B, C, H, W], float32, normalised; "labels" [B], int64. As bytes: "images" uint8 and "views"
  /// [B, 3] int64, by how much an image is moved up and left, and whether it is mirrored.
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t draw) const override;
  uint64_t fingerprint() const override;

 private:
  /// Where the crop begins in the padded image, and whether it is mirrored.
  struct View {
    int64_t top, left;
    bool mirrored;
  };
  View view_of(int64_t id, uint64_t draw) const;
  void paint(int64_t id, const View& view, float* into) const;
  const uint8_t* pixels_of(int64_t id) const { return set_.pixels.data() + id * task_->pixels(); }

  std::shared_ptr<const corpora::ImageTask> task_;
  const corpora::ImageSet& set_;  ///< of task_
  bool augment_, flip_, bytes_;
  int64_t pad_;
  at::Tensor levels_CL_;  ///< what each byte becomes
};

}  // namespace syncopate::data
