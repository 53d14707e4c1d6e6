#include "syncopate/data/image_dataset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "syncopate/nn/layers/show.h"
#include "syncopate/tensor/image_levels.h"
#include "tests/support/fixtures.h"

namespace syncopate::data {
namespace {

using Ids = std::vector<int64_t>;

/// `count` images of 2 channels, 3 rows and 4 columns, every pixel different.
std::shared_ptr<corpora::ImageTask> small_task(int count) {
  auto task = std::make_shared<corpora::ImageTask>();
  task->name = "small";
  task->channels = 2;
  task->height = 3;
  task->width = 4;
  task->labels = {"x", "y"};
  for (int i = 0; i < count * 24; ++i)
    task->train.pixels.push_back(static_cast<uint8_t>(i % 24 * 10 + i / 24 % 10 + 1));
  for (int i = 0; i < count; ++i) task->train.labels.push_back(static_cast<uint8_t>(i % 2));
  return task;
}

const corpora::Normalisation kPlain{.mean = {0, 0}, .deviation = {1, 1}};

at::Tensor pixels_of(const tensor::Batch& batch) { return (batch.at("images") * 255).round().to(at::kInt); }

/// The image as `top`, `left` and `mirrored` make it of its zero-padded form.
at::Tensor cropped(const at::Tensor& image, int64_t pad, int64_t top, int64_t left, bool mirrored) {
  at::Tensor whole =
      at::zeros({image.size(0), image.size(1) + 2 * pad, image.size(2) + 2 * pad}, image.options());
  whole.slice(1, pad, pad + image.size(1)).slice(2, pad, pad + image.size(2)).copy_(image);
  const at::Tensor cut = whole.slice(1, top, top + image.size(1)).slice(2, left, left + image.size(2));
  return mirrored ? cut.flip(2) : cut;
}

TEST(ImageDataset, NormalisesEachChannel) {
  const auto task = small_task(3);
  const corpora::Normalisation normal{.mean = {0.5, 0.25}, .deviation = {0.5, 2}};
  const ImageDataset data(task, ImageDataset::Split::kTrain, {.normalisation = normal});
  const tensor::Batch batch = data.collate(Ids{2, 0}, 4);
  ASSERT_EQ(batch.at("images").sizes(), (at::IntArrayRef{2, 2, 3, 4}));
  EXPECT_TRUE(at::equal(batch.at("labels"), at::tensor({0, 0}, at::kLong)));
  const at::Tensor raw =
      at::from_blob(task->train.pixels.data(), {3, 2, 3, 4}, at::kByte).to(at::kDouble) / 255;
  const at::Tensor expected =
      (raw - at::tensor({0.5, 0.25}).view({2, 1, 1})) / at::tensor({0.5, 2.0}).view({2, 1, 1});
  EXPECT_TRUE(at::allclose(batch.at("images")[0].to(at::kDouble), expected[2], 1e-6, 1e-6));
  EXPECT_TRUE(at::equal(batch.at("images"), data.collate(Ids{2, 0}, 5).at("images"))) << "nothing random";
  EXPECT_EQ(data.collate({}, 1).at("images").sizes(), (at::IntArrayRef{0, 2, 3, 4}));
  EXPECT_THROW(data.collate(Ids{3}, 1), InternalError);
}

TEST(ImageDataset, FingerprintTellsPixelsAndLabelsApart) {
  const auto mark = [](const std::shared_ptr<corpora::ImageTask>& task, bool augment) {
    return ImageDataset(task, ImageDataset::Split::kTrain,
                        {.augment = augment, .pad = 1, .normalisation = kPlain})
        .fingerprint();
  };
  const uint64_t plain = mark(small_task(3), false);
  EXPECT_EQ(mark(small_task(3), true), plain) << "the same images, drawn otherwise";
  auto task = small_task(3);
  task->train.pixels[5] ^= 1;
  EXPECT_NE(mark(task, false), plain);
  task = small_task(3);
  task->train.labels[1] ^= 1;
  EXPECT_NE(mark(task, false), plain);
}

TEST(ImageDataset, EveryViewIsACropOfThePaddedImage) {
  const auto task = small_task(1);
  const ImageDataset plain(task, ImageDataset::Split::kTrain, {.normalisation = kPlain});
  const ImageDataset data(task, ImageDataset::Split::kTrain,
                          {.augment = true, .pad = 2, .normalisation = kPlain});
  const at::Tensor image = pixels_of(plain.collate(Ids{0}, 1))[0];
  std::vector<int> seen(50, 0);
  for (uint64_t draw = 0; draw < 1000; ++draw) {
    const at::Tensor view = pixels_of(data.collate(Ids{0}, draw))[0];
    int matches = 0;
    for (int k = 0; k < 50; ++k) {
      if (!at::equal(view, cropped(image, 2, k / 10, k / 2 % 5, k % 2 == 1))) continue;
      ++matches;
      ++seen[static_cast<size_t>(k)];
    }
    ASSERT_EQ(matches, 1) << "draw " << draw;
  }
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 3) << "all views come";
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), 60) << "and none much more often";
}

TEST(ImageDataset, ViewDependsOnlyOnDrawAndExample) {
  const auto task = small_task(8);
  const ImageDataset data(task, ImageDataset::Split::kTrain,
                          {.augment = true, .pad = 2, .normalisation = kPlain});
  const auto of = [&](Ids ids, uint64_t draw) { return data.collate(ids, draw).at("images"); };
  EXPECT_TRUE(at::equal(of({0, 1, 2, 3, 4}, 9)[3], of({3, 7}, 9)[0])) << "in any batch";
  EXPECT_FALSE(at::equal(of({0, 1, 2, 3}, 9), of({0, 1, 2, 3}, 10))) << "another draw";
  const ImageDataset steady(task, ImageDataset::Split::kTrain,
                            {.augment = true, .pad = 0, .flip = false, .normalisation = kPlain});
  const ImageDataset none(task, ImageDataset::Split::kTrain, {.normalisation = kPlain});
  EXPECT_TRUE(at::equal(steady.collate(Ids{1, 2}, 9).at("images"), none.collate(Ids{1, 2}, 9).at("images")));
}

TEST(ImageDataset, BytesAreShownOnADeviceAsTheyArePaintedHere) {
  const auto task = small_task(9);
  const corpora::Normalisation normal{.mean = {0.5, 0.25}, .deviation = {0.5, 2}};
  const at::Tensor levels = tensor::image_levels(normal.mean, normal.deviation);
  for (const bool augment : {false, true}) {
    ImageOptions options{.augment = augment, .pad = 2, .normalisation = normal};
    const ImageDataset painted(task, ImageDataset::Split::kTrain, options);
    options.bytes = true;
    const ImageDataset data(task, ImageDataset::Split::kTrain, options);
    EXPECT_EQ(data.fingerprint(), painted.fingerprint());
    for (uint64_t draw = 0; draw < 40; ++draw) {
      const tensor::Batch batch = data.collate(Ids{0, 3, 8, 3}, draw),
                          right = painted.collate(Ids{0, 3, 8, 3}, draw);
      ASSERT_EQ(batch.at("images").scalar_type(), at::kByte);
      const at::Tensor shown = nn::show(batch.at("images"), batch.at("views"), levels);
      ASSERT_TRUE(at::equal(shown, right.at("images"))) << "draw " << draw;
      ASSERT_TRUE(at::equal(batch.at("labels"), right.at("labels")));
      if (augment) {
        EXPECT_FALSE(at::equal(shown, painted.collate(Ids{0, 3, 8, 3}, draw + 1).at("images")));
      }
    }
    EXPECT_EQ(data.collate({}, 1).at("views").sizes(), (at::IntArrayRef{0, 3}));
  }
}

TEST(ImageDataset, RejectsInvalidInput) {
  const auto task = small_task(2);
  const auto make = [&](ImageDataset::Split split, int64_t pad = 1) {
    ImageDataset(task, split, {.augment = true, .pad = pad, .normalisation = kPlain});
  };
  EXPECT_THROW(make(ImageDataset::Split::kTrain, -1), ConfigError);
  EXPECT_THROW(make(ImageDataset::Split::kTrain, 4), ConfigError);
  EXPECT_EQ(test::sentence<DataError>([&] { make(ImageDataset::Split::kTest); }),
            "the test split of small has no images; check the data");
  task->train.labels[1] = 2;
  EXPECT_NE(
      test::sentence<DataError>([&] { make(ImageDataset::Split::kTrain); }).find("image 1 of the training"),
      std::string::npos);
  EXPECT_THROW(corpora::normalisation_of(corpora::ImageSet{}, 3), DataError);
  const corpora::ImageSet black{.pixels = std::vector<uint8_t>(12, 0), .labels = {0}};
  EXPECT_EQ(corpora::normalisation_of(black, 3).deviation[0], 1.0) << "nothing is divided by zero";
}

}  // namespace
}  // namespace syncopate::data
