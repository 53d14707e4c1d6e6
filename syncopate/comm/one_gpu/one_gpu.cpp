#include "syncopate/comm/one_gpu/one_gpu.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "syncopate/gpu/shared.h"

namespace syncopate::comm {
namespace {

constexpr int kMostRanks = 8;  // whose arrays a kernel takes at once

bool on_gpu(const at::Tensor& tensor) {
  return tensor.is_cuda() && tensor.is_contiguous() && tensor.numel() > 0;
}

class OneGpu : public Group {
 public:
  explicit OneGpu(std::unique_ptr<Group> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  Pending all_reduce(at::Tensor tensor, Op op) override {
    const bool takes = op == Op::kSum && tensor.scalar_type() == at::kFloat && size() <= kMostRanks;
    if (!takes || !on_gpu(tensor)) return inner_->all_reduce(tensor, op);
    const std::vector<void*> all = places_of({tensor}, 1);
    if (all.empty()) return inner_->all_reduce(tensor, op);
    // Whole vectors to everybody.
    const int64_t share = ((tensor.numel() + size() - 1) / size() + 3) / 4 * 4;
    const int64_t begin = std::min(rank() * share, tensor.numel());
    gpu::sum_into_all(all, begin, std::min(begin + share, tensor.numel()));
    meet();
    return {};
  }

  Pending broadcast(at::Tensor tensor, int root) override {
    if (!on_gpu(tensor)) return inner_->broadcast(tensor, root);
    const std::vector<void*> all = places_of({tensor}, 1);
    if (all.empty()) return inner_->broadcast(tensor, root);
    if (rank() != root) gpu::copy_from(tensor, all[static_cast<size_t>(root)]);
    meet();
    return {};
  }

  Pending gather(std::vector<at::Tensor> into, at::Tensor mine, int root) override {
    if (!on_gpu(mine)) return inner_->gather(std::move(into), mine, root);
    const std::vector<void*> all = places_of({mine}, 1);
    if (all.empty()) return inner_->gather(std::move(into), mine, root);
    for (size_t i = 0; i < into.size(); ++i) gpu::copy_from(into[i], all[i]);
    meet();
    return {};
  }

  Pending scatter(at::Tensor into, std::vector<at::Tensor> from, int root) override {
    if (!on_gpu(into)) return inner_->scatter(into, std::move(from), root);
    // The root's tensors are what the others need; their own stand in for them.
    const auto count = static_cast<size_t>(size());
    const std::vector<at::Tensor> shown = rank() == root ? from : std::vector<at::Tensor>(count, into);
    const std::vector<void*> all = places_of(shown, count);
    if (all.empty()) return inner_->scatter(into, std::move(from), root);
    gpu::copy_from(into, all[static_cast<size_t>(root) * count + static_cast<size_t>(rank())]);
    meet();
    return {};
  }

  Pending all_gather(std::vector<at::Tensor> into, at::Tensor mine) override {
    if (!on_gpu(mine)) return inner_->all_gather(std::move(into), mine);
    const std::vector<void*> all = places_of({mine}, 1);
    if (all.empty()) return inner_->all_gather(std::move(into), mine);
    for (size_t i = 0; i < into.size(); ++i) gpu::copy_from(into[i], all[i]);
    meet();
    return {};
  }

  Pending send(at::Tensor tensor, int to, int tag) override { return inner_->send(tensor, to, tag); }
  Pending receive(at::Tensor into, int from, int tag) override { return inner_->receive(into, from, tag); }
  void barrier() override { inner_->barrier(); }
  at::Tensor room(int64_t count, at::ScalarType type) override { return inner_->room(count, type); }
  at::Tensor common(int64_t count, at::ScalarType type) override { return inner_->common(count, type); }
  Pending sum_into(at::Tensor total, at::Tensor mine) override { return inner_->sum_into(total, mine); }
  Pending sum_rows_into(at::Tensor total, at::Tensor mine, at::Tensor in_use, at::Tensor numbers) override {
    return inner_->sum_rows_into(total, mine, in_use, numbers);
  }
  void set_timeout(std::chrono::milliseconds timeout) override { inner_->set_timeout(timeout); }
  std::unique_ptr<Group> split(int color, int key) override {
    return std::make_unique<OneGpu>(inner_->split(color, key));
  }

 private:
  /// Where every rank's tensors are, rank by rank, seen from here; what they hold is there. Empty on every
  /// rank where any of them cannot see some.
  std::vector<void*> places_of(const std::vector<at::Tensor>& mine, size_t each) {
    if (apart_) return {};
    std::vector<gpu::Handle> handles;
    for (const at::Tensor& tensor : mine) handles.push_back(gpu::share(tensor));
    gpu::finish();
    const auto bytes = static_cast<int64_t>(each * sizeof(gpu::Handle));
    const at::Tensor told = at::empty({bytes}, at::kByte), all = at::empty({size(), bytes}, at::kByte);
    std::memcpy(told.data_ptr(), handles.data(), static_cast<size_t>(bytes));
    inner_->all_gather(all.unbind(0), told).wait();
    std::vector<void*> found;
    bool sees_all = true;
    for (int r = 0; r < size(); ++r) {
      for (size_t i = 0; i < each; ++i) {
        gpu::Handle handle;
        const auto* const from = static_cast<const char*>(all.data_ptr()) + r * bytes;
        std::memcpy(&handle, from + i * sizeof handle, sizeof handle);
        void* const place = r == rank() ? mine[i].data_ptr() : mappings_.find(handle);
        sees_all = sees_all && handle.shared != 0 && place != nullptr;
        found.push_back(place);
      }
    }
    if (agreed_) return sees_all ? found : std::vector<void*>();
    const at::Tensor verdict = at::full({1}, sees_all ? 1.0 : 0.0, at::kDouble);
    inner_->all_reduce(verdict, Op::kMin).wait();
    agreed_ = verdict.item<double>() == 1;
    apart_ = !agreed_;
    return agreed_ ? found : std::vector<void*>();
  }

  /// Nobody goes on before all have read and written what they had to.
  void meet() {
    gpu::finish();
    inner_->barrier();
  }

  std::unique_ptr<Group> inner_;
  gpu::Mappings mappings_;
  bool agreed_ = false;  ///< every rank sees the others' memory
  bool apart_ = false;   ///< some do not, and never will
};

}  // namespace

std::unique_ptr<Group> on_one_gpu(std::unique_ptr<Group> inner) {
  return std::make_unique<OneGpu>(std::move(inner));
}

}  // namespace syncopate::comm
