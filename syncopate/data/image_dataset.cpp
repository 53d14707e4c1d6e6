#include "syncopate/data/image_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/rng.h"
#include "syncopate/tensor/image_levels.h"

namespace syncopate::data {
namespace {

// Keeps crops apart from other streams drawn from the same seed.
constexpr uint64_t kViewStream = 0x76696577;

const corpora::ImageSet& part_of(const std::shared_ptr<const corpora::ImageTask>& task,
                                 ImageDataset::Split split) {
  check(task != nullptr, "images belong to a task");
  return split == ImageDataset::Split::kTrain ? task->train : task->test;
}

}  // namespace

ImageDataset::ImageDataset(std::shared_ptr<const corpora::ImageTask> task, Split split,
                           const ImageOptions& options)
    : task_(std::move(task)),
      set_(part_of(task_, split)),
      augment_(options.augment),
      flip_(options.flip),
      bytes_(options.bytes),
      pad_(options.augment ? options.pad : 0) {
  const char* name = split == Split::kTrain ? "training" : "test";
  if (set_.size() == 0)
    throw DataError("the {} split of {} has no images; check the data", name, task_->name);
  check(static_cast<int64_t>(set_.pixels.size()) == set_.size() * task_->pixels(), "every image is whole");
  if (pad_ < 0 || pad_ > std::min(task_->height, task_->width)) {
    throw ConfigError("the padding of images must be 0 to {}, got {}", std::min(task_->height, task_->width),
                      pad_);
  }
  for (int64_t i = 0; i < set_.size(); ++i) {
    const uint8_t label = set_.labels[static_cast<size_t>(i)];
    if (label >= task_->labels.size()) {
      throw DataError(
          "image {} of the {} split of {} has the label {}, but there are {} labels; check the data", i, name,
          task_->name, label, task_->labels.size());
    }
  }
  check(options.normalisation.mean.size() == static_cast<size_t>(task_->channels),
        "a normalisation has a mean and a deviation per channel");
  levels_CL_ = tensor::image_levels(options.normalisation.mean, options.normalisation.deviation);
}

ImageDataset::View ImageDataset::view_of(int64_t id, uint64_t draw) const {
  if (!augment_) return {pad_, pad_, false};
  Rng rng(mix_key(draw, kViewStream, id));
  const auto places = static_cast<uint64_t>(2 * pad_ + 1);
  const auto top = static_cast<int64_t>(rng.below(places));
  const auto left = static_cast<int64_t>(rng.below(places));
  return {top, left, flip_ && rng.below(2) == 1};
}

void ImageDataset::paint(int64_t id, const View& view, float* into) const {
  const int64_t height = task_->height, width = task_->width;
  const int64_t down = view.top - pad_, right = view.left - pad_;
  const int64_t begin = std::clamp<int64_t>(-right, 0, width);  // columns that lie within the image
  const int64_t end = std::clamp<int64_t>(width - right, begin, width);
  const uint8_t* const image = pixels_of(id);
  for (int64_t channel = 0; channel < task_->channels; ++channel) {
    const float* const level = levels_CL_.data_ptr<float>() + channel * levels_CL_.size(1);
    for (int64_t y = 0; y < height; ++y, into += width) {
      const int64_t row = y + down;
      if (row < 0 || row >= height) {
        std::fill_n(into, width, level[0]);
        continue;
      }
      const uint8_t* pixels = image + (channel * height + row) * width;
      std::fill(into, into + begin, level[0]);
      for (int64_t x = begin; x < end; ++x) into[x] = level[pixels[x + right]];
      std::fill(into + end, into + width, level[0]);
      if (view.mirrored) std::reverse(into, into + width);
    }
  }
}

tensor::Batch ImageDataset::collate(std::span<const int64_t> ids, uint64_t draw) const {
  tensor::Batch batch;
  batch.ids.assign(ids.begin(), ids.end());
  const auto rows = static_cast<int64_t>(ids.size());
  at::Tensor images =
      at::empty({rows, task_->channels, task_->height, task_->width}, bytes_ ? at::kByte : at::kFloat);
  at::Tensor labels = at::empty({rows}, at::kLong), views = at::empty({bytes_ ? rows : 0, 3}, at::kLong);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t id = ids[static_cast<size_t>(row)];
    check(id >= 0 && id < size(), "an example's number is within its data set");
    const View view = view_of(id, draw);
    if (bytes_) {
      std::copy_n(pixels_of(id), task_->pixels(), images.data_ptr<uint8_t>() + row * task_->pixels());
      int64_t* const into = views.data_ptr<int64_t>() + 3 * row;
      into[0] = view.top - pad_;
      into[1] = view.left - pad_;
      into[2] = view.mirrored ? 1 : 0;
    } else {
      paint(id, view, images.data_ptr<float>() + row * task_->pixels());
    }
    labels.data_ptr<int64_t>()[row] = set_.labels[static_cast<size_t>(id)];
  }
  batch.fields = {{"images", images}, {"labels", labels}};
  if (bytes_) batch.fields["views"] = views;
  return batch;
}

uint64_t ImageDataset::fingerprint() const { return checksum_of(set_.labels, checksum_of(set_.pixels)); }

}  // namespace syncopate::data
