#include "syncopate/parallel/engines/graph_engine.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/gpu/seed.h"
#include "syncopate/parallel/engines/block_chain.h"
#include "syncopate/tensor/half_weights.h"

namespace syncopate::parallel {
namespace {

/// Every one takes memory for its graphs; who has more shapes than this hardly meets one again.
constexpr size_t kMostShapes = 64;

/// What batches must have alike to be computed by the same kernels.
std::string shape_of(const tensor::Batch& batch, bool whole) {
  std::string made = whole ? "whole" : "padded";
  for (const auto& [name, field] : batch.fields)
    made += fmt::format(" {} {} {}", name, c10::toString(field.scalar_type()), fmt::join(field.sizes(), "x"));
  return made;
}

/// Whether no text is padded, so that nobody needs a mask.
bool is_whole(const tensor::Batch& batch) {
  const auto mask = batch.fields.find("attention_mask");
  return mask == batch.fields.end() || batch.real_tokens == mask->second.numel();
}

}  // namespace

/// A batch's fields side by side in one array, so that they move as one.
struct GraphEngine::Packed {
  Packed() = default;
  Packed(const tensor::Batch& like, const at::TensorOptions& where) : batch(like) {
    constexpr int64_t kLine = 256;
    const auto room = [&](const at::Tensor& field) {
      return (static_cast<int64_t>(field.nbytes()) + kLine - 1) / kLine * kLine;
    };
    int64_t size = 0;
    for (const auto& [name, field] : batch.fields) size += room(field);
    bytes = at::empty({size}, where.dtype(at::kByte));
    int64_t at = 0;
    for (auto& [name, field] : batch.fields) {
      const at::Tensor part = bytes.narrow(0, at, static_cast<int64_t>(field.nbytes()));
      at += room(field);
      field = part.view(field.scalar_type()).view(field.sizes());
    }
  }

  at::Tensor bytes;
  tensor::Batch batch;  ///< its fields lie there
};

struct GraphEngine::Shape {
  ~Shape() {
    if (uploaded) uploaded->wait();
  }

  Packed on_host, ahead, on_device;  ///< where a batch is put (pinned), goes to, and is read by kernels
  at::Tensor scale;                  ///< of the loss, on the device
  at::Tensor loss, loss_on_host;
  std::optional<gpu::Graph> forward, backward;
  std::optional<gpu::Mark> uploaded, taken, loss_known;
};

GraphEngine::GraphEngine(std::unique_ptr<Engine> plain, std::function<void(const std::string&)> note)
    : plain_(std::move(plain)), note_(std::move(note)) {}

GraphEngine::~GraphEngine() = default;

void GraphEngine::record(Replica& replica, const tensor::Batch& batch, Shape& shape) {
  const c10::Device device = replica.params.values.device();
  if (!uploads_) uploads_ = std::make_unique<gpu::SideStream>(device);
  shape.on_host = Packed(batch, at::TensorOptions().pinned_memory(true));
  shape.ahead = Packed(batch, at::TensorOptions(device));
  shape.on_device = Packed(batch, at::TensorOptions(device));
  shape.scale = at::ones({}, at::TensorOptions().device(device).dtype(at::kFloat));
  shape.loss_on_host = at::zeros({}, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
  shape.uploaded.emplace();
  shape.taken.emplace();
  shape.taken->set();  // whoever had that memory before is done with it
  shape.loss_known.emplace();
  shape.forward.emplace(memory_);
  std::optional<BlockChain> chain;
  shape.forward->record([&] {
    const tensor::HalfWeights half_weights(replica.params);
    chain.emplace(replica.model,
                  ChainOptions{.mode = {.training = true}, .precision = replica.precision, .device = device},
                  shape.on_device.batch);
    shape.loss = chain->loss().sum.to(at::kFloat);
  });
  if (memory_ == nullptr) memory_ = &*shape.forward;
  shape.backward.emplace(memory_);
  shape.backward->record([&] { chain->backward_from_loss(shape.scale); });
  ++recorded_;
}

void GraphEngine::upload(const tensor::Batch& batch, Shape& shape) {
  shape.uploaded->wait();  // what was there has left
  for (auto& [name, field] : shape.on_host.batch.fields) field.copy_(batch.at(name));
  // The device may still be busy with the step before; nothing of it is waited for.
  uploads_->run([&] {
    shape.taken->hold();
    shape.ahead.bytes.copy_(shape.on_host.bytes, true);
    shape.uploaded->set();
  });
  shape.uploaded->hold();
  shape.on_device.bytes.copy_(shape.ahead.bytes, true);
  shape.taken->set();
}

GraphEngine::Shape* GraphEngine::find(Replica& replica, const tensor::Batch& batch) {
  auto [found, fresh] = shapes_.try_emplace(shape_of(batch, is_whole(batch)));
  if (fresh) return nullptr;  // the next time: libraries set themselves up in the first
  if (!found->second) {
    if (static_cast<size_t>(recorded_) >= kMostShapes) {
      if (!std::exchange(full_, true)) {
        note_(
            fmt::format("there are graphs for {} shapes of batches: those of further shapes are launched "
                        "kernel by kernel",
                        kMostShapes));
      }
      return nullptr;
    }
    auto made = std::make_unique<Shape>();
    try {
      record(replica, batch, *made);
    } catch (const std::exception& error) {
      records_ = false;
      const std::string why = error.what();
      note_(fmt::format("the GPU's work cannot be recorded as a graph ({}): it is launched kernel by kernel",
                        why.substr(0, why.find('\n'))));
      return nullptr;
    }
    found->second = std::move(made);
  }
  return found->second.get();
}

Gradients GraphEngine::run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                           const EngineEvents& events) {
  std::vector<tensor::Batch> batches;
  std::vector<Shape*> shapes;
  bool all = records_ && !micro.empty();
  for (const tensor::Batch& each : micro) {
    if (!records_) break;
    batches.push_back(replica.model.in_common_shape(each).with_noise(noise_key));
    shapes.push_back(find(replica, batches.back()));
    all = all && shapes.back() != nullptr;
  }
  if (!all) return plain_->run(replica, micro, noise_key, events);

  const auto phase = [&](const char* name) {
    if (events.phase) events.phase(name);
  };
  const c10::Device device = replica.params.values.device();
  replica.refresh_half();
  Gradients made;
  for (size_t i = 0; i < micro.size(); ++i) {
    Shape& shape = *shapes[i];
    phase("forward");
    upload(batches[i], shape);
    if (replica.loss_scale != nullptr) shape.scale.fill_(replica.loss_scale->value());
    gpu::seed(device, noise_key, micro[i].ids);  // of the dropouts that libtorch draws
    shape.forward->launch();
    shape.loss_on_host.copy_(shape.loss, true);
    shape.loss_known->set();
    phase("backward");
    shape.backward->launch();
    // The device is busy with the backward pass meanwhile.
    shape.loss_known->wait();
    made.loss.sum += *shape.loss_on_host.data_ptr<float>();
    made.loss.count += replica.model.count(micro[i]);
    made.loss.of_replica = made.loss.count;
    if (events.before_backward) events.before_backward(made.loss, made.rows, i + 1 == micro.size());
  }
  return made;
}

}  // namespace syncopate::parallel
