// cifar10, idx: images and the class of each.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/comm/metering/payload.h"
#include "syncopate/corpora/images/cifar10.h"
#include "syncopate/corpora/images/idx.h"
#include "syncopate/data/image_dataset.h"
#include "syncopate/nn/resnet/resnet_folder.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"

namespace syncopate::tasks {
namespace {

train::MakeMetric metric_of(const corpora::ImageTask& task) {
  return train::classification({.classes = static_cast<int64_t>(task.labels.size()), .top = 5, .parts = {}});
}

std::vector<uint64_t> keys_of(const corpora::ImageSet& images, int64_t size) {
  const auto bytes = static_cast<size_t>(size);
  const char* const pixels = reinterpret_cast<const char*>(images.pixels.data());
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < images.labels.size(); ++i)
    keys.push_back(corpora::validation_key({pixels + i * bytes, bytes}));
  return keys;
}

/// The images of the validation split, as a test split of their own: held out of `task.train`, or those of a
/// file; null: it is off.
std::shared_ptr<const corpora::ImageTask> validation_of(corpora::ImageTask& task, const spec::RunSpec& spec) {
  const spec::RunSpec::Validation validation = spec.validation();
  if (!validation.on()) return nullptr;
  if (!validation.path.empty()) {
    auto loaded = std::make_shared<const corpora::ImageTask>(
        load_images(spec.task.name, validation.path, corpora::Purpose::kEvaluate));
    task.notes.insert(task.notes.end(), loaded->notes.begin(), loaded->notes.end());
    require_other_than_test(keys_of(loaded->test, loaded->pixels()), keys_of(task.test, task.pixels()));
    return loaded;
  }
  const auto image = static_cast<size_t>(task.pixels());
  const std::vector<uint64_t> keys = keys_of(task.train, task.pixels());
  const std::vector<char> held = corpora::held_out_for_validation(keys, validation_share(spec, keys.size()));
  auto made = std::make_shared<corpora::ImageTask>(corpora::ImageTask{.name = task.name,
                                                                      .channels = task.channels,
                                                                      .height = task.height,
                                                                      .width = task.width,
                                                                      .labels = task.labels,
                                                                      .train = {},
                                                                      .test = {},
                                                                      .notes = {}});
  const corpora::ImageSet all = std::exchange(task.train, {});
  for (size_t i = 0; i < held.size(); ++i) {
    corpora::ImageSet& into = held[i] != 0 ? made->test : task.train;
    const auto begin = all.pixels.begin() + static_cast<std::ptrdiff_t>(i * image);
    into.pixels.insert(into.pixels.end(), begin, begin + static_cast<std::ptrdiff_t>(image));
    into.labels.push_back(all.labels[i]);
  }
  task.notes.push_back(validation_note(made->test.labels.size(), keys.size(), "images"));
  return made;
}

void require_images_fit(const corpora::ImageTask& task, const nn::ResNetConfig& config,
                        const std::string& folder) {
  if (config.channels == task.channels) return;
  throw DataError(
      "the model {} takes images of {} channels but these have {}; use a model trained on such images",
      folder, config.channels, task.channels);
}

}  // namespace

corpora::ImageTask load_images(const std::string& task, const std::string& path, corpora::Purpose purpose) {
  if (task == "cifar10") {
    if (path.empty()) {
      throw ConfigError(
          "the task cifar10 needs its data: give the folder with data_batch_1.bin and the others with "
          "--data");
    }
    return corpora::load_cifar10(path, purpose);
  }
  return corpora::load_mnist(path.empty() ? "fashion-mnist" : "mnist", path, purpose);
}

TaskSetup make_images(const spec::RunSpec& spec, comm::Group&) {
  const Start start = find_start(spec);
  corpora::ImageTask loaded_task = load_images(spec.task.name, spec.task.data, corpora::Purpose::kTrain);
  const auto validation = validation_of(loaded_task, spec);
  const auto task = std::make_shared<const corpora::ImageTask>(std::move(loaded_task));
  const corpora::Normalisation normalisation = corpora::normalisation_of(task->train, task->channels);
  const auto labels = static_cast<int64_t>(task->labels.size());
  TaskSetup made;
  std::unique_ptr<nn::ResNet> owned;
  const auto settle = [&](nn::ResNetConfig& config) {
    require_images_fit(*task, config, start.folder);
    config.labels = task->labels;
    config.mean = normalisation.mean;
    config.std = normalisation.deviation;
    config.side = task->height;
  };
  if (start.folder.empty()) {
    nn::ResNetConfig config = nn::resnet_preset(spec.model.name);
    config.channels = task->channels;
    config.num_labels = labels;
    settle(config);
    owned = nn::make_resnet(config, start_seed(spec));
  } else {
    nn::LoadedResNet loaded = nn::load_resnet(start.folder, labels, start_seed(spec), settle);
    owned = std::move(loaded.model);
    made.notes = std::move(loaded.notes);
    const bool preset = nn::is_resnet_preset(spec.model.name);
    const nn::ResNetConfig named = preset ? nn::resnet_preset(spec.model.name) : nn::ResNetConfig{};
    require_same_shape(
        spec, preset && named.widths == owned->config().widths && named.blocks == owned->config().blocks);
    if (start.fresh_head) owned->initialize_head(start_seed(spec));
  }
  nn::ResNet& model = *owned;
  model.set_label_smoothing(spec.optim.label_smoothing);
  made.model = std::move(owned);
  const data::ImageOptions options{.augment = spec.task.augment,
                                   .pad = task->height >= 32 ? 4 : 2,
                                   .flip = true,
                                   .normalisation = normalisation,
                                   .bytes = spec.compute.device != "cpu"};
  data::ImageOptions plain = options;
  plain.augment = false;
  made.train =
      limited(std::make_shared<data::ImageDataset>(task, data::ImageDataset::Split::kTrain, options), spec);
  made.test =
      sampled(std::make_shared<data::ImageDataset>(task, data::ImageDataset::Split::kTest, plain), spec);
  made.metric = metric_of(*task);
  if (validation != nullptr) {
    if (validation->channels != task->channels || validation->labels != task->labels) {
      throw DataError("{} does not hold images of the same kind and classes as the training data",
                      spec.validation().path);
    }
    made.validation =
        std::make_shared<data::ImageDataset>(validation, data::ImageDataset::Split::kTest, plain);
    made.validation_metric = made.metric;
  }
  made.save = [&model](const std::filesystem::path& folder) { nn::save_resnet(folder, model); };
  if (spec.model.batch_norm == "sync") {
    made.connect = [&model](comm::Group& group) {
      if (group.size() == 1) return;
      model.set_sum_over_ranks([&group](at::Tensor& sums) {
        const comm::Carrying carrying(comm::Payload::kActivations);
        group.all_reduce(sums, comm::Op::kSum).wait();
      });
    };
  }
  made.input = fmt::format("{} x {} x {} pixels", task->channels, task->height, task->width);
  made.fingerprint = fmt::format("{} {}", task->name, made.input);
  made.notes.insert(made.notes.end(), task->notes.begin(), task->notes.end());
  return made;
}

Scoring score_images(const spec::ScoreSpec& spec, bool predict) {
  const auto task = std::make_shared<const corpora::ImageTask>(
      load_images(spec.task, spec.data, purpose_of(spec, predict)));
  nn::LoadedResNet loaded = nn::load_resnet(spec.model, std::nullopt, 0);
  const nn::ResNetConfig& config = loaded.model->config();
  require_images_fit(*task, config, spec.model);
  if (config.num_labels != static_cast<int64_t>(task->labels.size())) {
    throw DataError(
        "the model in {} tells {} classes apart but the task {} has {}; use a model trained on this task",
        spec.model, config.num_labels, spec.task, task->labels.size());
  }
  if (config.mean.empty()) {
    throw DataError("the model in {} does not say how its images were normalised; train it again",
                    spec.model);
  }
  Scoring made;
  made.test = std::make_shared<data::ImageDataset>(
      task, data::ImageDataset::Split::kTest,
      data::ImageOptions{.augment = false,
                         .pad = 0,
                         .flip = false,
                         .normalisation = {.mean = config.mean, .deviation = config.std}});
  made.metric = metric_of(*task);
  made.notes = task->notes;
  if (config.side != task->height || (!config.labels.empty() && config.labels != task->labels)) {
    made.notes.push_back(fmt::format(
        "the model was trained on images of {} pixels to tell {}; these have {} pixels and are of {}",
        config.side, fmt::join(config.labels, ", "), task->height, fmt::join(task->labels, ", ")));
  }
  const auto& names = config.labels.empty() ? task->labels : config.labels;
  made.answer = [names, shown = std::min<int64_t>(spec.best, config.num_labels)](
                    const Scoring::ForEachOutput& outputs,
                    const std::function<void(const std::string&)>& line) {
    outputs([&](const at::Tensor& output, const tensor::Batch& batch) {
      const auto [probabilities, classes] = at::softmax(output.to(at::kCPU, at::kFloat), -1).topk(shown, -1);
      for (int64_t row = 0; row < output.size(0); ++row) {
        nlohmann::ordered_json best = nlohmann::ordered_json::array();
        for (int64_t k = 0; k < shown; ++k) {
          best.push_back({{"label", names[static_cast<size_t>(classes[row][k].item<int64_t>())]},
                          {"probability", probabilities[row][k].item<double>()}});
        }
        line(nlohmann::ordered_json{{"index", batch.ids[static_cast<size_t>(row)]},
                                    {"label", best[0]["label"]},
                                    {"probability", best[0]["probability"]},
                                    {"best", best}}
                 .dump());
      }
    });
  };
  made.model = std::move(loaded.model);
  return made;
}

}  // namespace syncopate::tasks
