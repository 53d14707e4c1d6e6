#include "syncopate/nn/resnet/resnet_folder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "tests/support/support.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;
using test::TempDir;

ResNetConfig tiny_resnet() {
  ResNetConfig config;
  config.widths = {4, 6};
  config.blocks = 1;
  config.channels = 2;
  config.side = 9;
  config.num_labels = 3;
  config.labels = {"cat", "dog", "newt"};
  config.mean = {0.4914, 0.4822};
  config.std = {0.247, 0.2435};
  return config;
}

/// A model whose running statistics are its own.
std::unique_ptr<ResNet> trained() {
  auto model = make_resnet(tiny_resnet(), 3);
  model->set_mode({true, 0});
  at::manual_seed(1);
  Batch batch;
  batch.fields["images"] = at::randn({4, 2, 9, 9});
  model->forward(batch);
  model->set_mode({});
  return model;
}

TEST(ResNetFolder, SaveAndLoadGiveTheSameBits) {
  const TempDir folder;
  const auto model = trained();
  save_resnet(folder.path(), *model);
  const LoadedResNet loaded = load_resnet(folder.path(), std::nullopt, 1);
  EXPECT_EQ(loaded.model->config(), tiny_resnet());
  EXPECT_FALSE(loaded.fresh_head);
  EXPECT_TRUE(loaded.notes.empty());
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(model->parameters()[i].tensor, loaded.model->parameters()[i].tensor));
  }
  for (size_t i = 0; i < model->buffers().size(); ++i) {
    EXPECT_TRUE(at::equal(model->buffers()[i].tensor, loaded.model->buffers()[i].tensor));
    EXPECT_GT((model->buffers()[i].tensor - make_resnet(tiny_resnet(), 3)->buffers()[i].tensor)
                  .abs()
                  .sum()
                  .item<double>(),
              0);
  }
}

TEST(ResNetFolder, DifferentNumberOfLabelsGetsAFreshHead) {
  const TempDir folder;
  const auto model = trained();
  save_resnet(folder.path(), *model);
  const LoadedResNet a = load_resnet(folder.path(), 7, 1), b = load_resnet(folder.path(), 7, 1);
  EXPECT_TRUE(a.fresh_head);
  EXPECT_EQ(a.notes.size(), 1u);
  EXPECT_TRUE(a.model->config().labels.empty());
  const auto left = a.model->parameters(), right = b.model->parameters();
  EXPECT_EQ(left.back().tensor.size(0), 7);
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(at::equal(left[i].tensor, right[i].tensor));
    if (!left[i].name.starts_with("fc.")) {
      EXPECT_TRUE(at::equal(left[i].tensor, model->parameters()[i].tensor));
    }
  }
  EXPECT_FALSE(
      at::equal(load_resnet(folder.path(), 7, 2).model->parameters().back().tensor, left.back().tensor));
}

TEST(ResNetFolder, RejectsInvalidFolders) {
  const TempDir folder;
  save_resnet(folder.path(), *trained());
  const json good = resnet_config_to_json(tiny_resnet());
  const auto fault = [&](const char* key, const json& value) -> std::string {
    json changed = good;
    changed[key] = value;
    test::write_text(folder / "config.json", changed.dump());
    try {
      load_resnet(folder.path(), std::nullopt, 1);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [](const std::string& said, const std::string& what) {
    EXPECT_NE(said.find(what), std::string::npos) << "expected \"" << what << "\" in: " << said;
  };
  EXPECT_EQ(fault("image_mean", "0.4, 0.3"), "");
  says(fault("image_mean", "0.4, red"), "one number for each channel");
  says(fault("image_mean", {0.4}), "2 channels");
  says(fault("image_std", {0.4, 0}), "above 0");
  says(fault("model_type", "resnet"), "resnet-cifar");
  says(fault("widths", "4,6"), "whole numbers");
  says(fault("widths", json::array()), "one stage or more");
  says(fault("widths", {4, 7}), "shape");
  says(fault("id2label", {{"0", "cat"}, {"2", "dog"}}), "id2label");
  EXPECT_THROW(load_resnet("/nowhere/at/all", std::nullopt, 1), DataError);
  EXPECT_THROW(resnet_preset("resnet-19"), ConfigError);
}

}  // namespace
}  // namespace syncopate::nn
