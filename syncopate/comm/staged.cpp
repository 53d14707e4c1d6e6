#include "syncopate/comm/staged.h"

#include <ATen/ATen.h>

#include <utility>

namespace syncopate::comm {
namespace {

/// One operation's tensors, and where they are on the host meanwhile.
class HostCopies {
 public:
  explicit HostCopies(Stage what) : what_(what) {}

  /// What the transport is given for `tensor`: its values if it is to be sent, and room for what comes back.
  at::Tensor host(const at::Tensor& tensor, bool sent, bool comes_back) {
    if (what_ == Stage::kDevices && tensor.is_cpu()) return tensor;
    const at::TensorOptions options = at::TensorOptions().dtype(tensor.scalar_type());
    const at::Tensor copy = at::empty(tensor.sizes(), options.pinned_memory(tensor.is_cuda()));
    // Blocks until the device has computed it: the transport looks at the memory at once.
    if (sent) at::Tensor(copy).copy_(tensor.detach());
    if (comes_back) back_.emplace_back(tensor.detach(), copy);
    return copy;
  }

  std::vector<at::Tensor> host(const std::vector<at::Tensor>& tensors, bool sent, bool comes_back) {
    std::vector<at::Tensor> copies;
    for (const at::Tensor& tensor : tensors) copies.push_back(host(tensor, sent, comes_back));
    return copies;
  }

  bool empty() const { return back_.empty(); }
  void unpack() {
    // Pinned memory is not used again before the device has read it, so nobody needs to wait here.
    for (auto& [tensor, copy] : back_) tensor.copy_(copy, tensor.is_cuda());
  }

 private:
  Stage what_;
  std::vector<std::pair<at::Tensor, at::Tensor>> back_;
};

class StagedWork : public Pending::Work {
 public:
  StagedWork(Pending inner, HostCopies copies) : inner_(std::move(inner)), copies_(std::move(copies)) {}
  void wait() override {
    inner_.wait();
    copies_.unpack();
  }

 private:
  Pending inner_;
  HostCopies copies_;
};

Pending after(Pending inner, HostCopies copies) {
  if (copies.empty()) return inner;
  return Pending(std::make_unique<StagedWork>(std::move(inner), std::move(copies)));
}

class Staged : public Group {
 public:
  Staged(std::unique_ptr<Group> inner, Stage what) : inner_(std::move(inner)), what_(what) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  Pending all_reduce(at::Tensor tensor, Op op) override {
    HostCopies copies(what_);
    Pending pending = inner_->all_reduce(copies.host(tensor, true, true), op);
    return after(std::move(pending), std::move(copies));
  }

  Pending broadcast(at::Tensor tensor, int root) override {
    HostCopies copies(what_);
    Pending pending = inner_->broadcast(copies.host(tensor, rank() == root, rank() != root), root);
    return after(std::move(pending), std::move(copies));
  }

  Pending gather(std::vector<at::Tensor> into, at::Tensor mine, int root) override {
    HostCopies copies(what_);
    std::vector<at::Tensor> room = copies.host(into, false, true);
    Pending pending = inner_->gather(std::move(room), copies.host(mine, true, false), root);
    return after(std::move(pending), std::move(copies));
  }

  Pending scatter(at::Tensor into, std::vector<at::Tensor> from, int root) override {
    HostCopies copies(what_);
    std::vector<at::Tensor> parts = copies.host(from, true, false);
    Pending pending = inner_->scatter(copies.host(into, false, true), std::move(parts), root);
    return after(std::move(pending), std::move(copies));
  }

  Pending all_gather(std::vector<at::Tensor> into, at::Tensor mine) override {
    HostCopies copies(what_);
    std::vector<at::Tensor> room = copies.host(into, false, true);
    Pending pending = inner_->all_gather(std::move(room), copies.host(mine, true, false));
    return after(std::move(pending), std::move(copies));
  }

  Pending send(at::Tensor tensor, int to, int tag) override {
    return inner_->send(HostCopies(what_).host(tensor, true, false), to, tag);
  }

  Pending receive(at::Tensor into, int from, int tag) override {
    HostCopies copies(what_);
    Pending pending = inner_->receive(copies.host(into, false, true), from, tag);
    return after(std::move(pending), std::move(copies));
  }

  void barrier() override { inner_->barrier(); }
  at::Tensor room(int64_t count, at::ScalarType type) override { return inner_->room(count, type); }
  at::Tensor common(int64_t count, at::ScalarType type) override {
    return what_ == Stage::kDevices ? inner_->common(count, type) : Group::common(count, type);
  }
  Pending sum_into(at::Tensor total, at::Tensor mine) override { return inner_->sum_into(total, mine); }
  Pending sum_rows_into(at::Tensor total, at::Tensor mine, at::Tensor in_use, at::Tensor numbers) override {
    return inner_->sum_rows_into(total, mine, in_use, numbers);
  }
  void set_timeout(std::chrono::milliseconds timeout) override { inner_->set_timeout(timeout); }
  std::unique_ptr<Group> split(int color, int key) override {
    return staged(inner_->split(color, key), what_);
  }

 private:
  std::unique_ptr<Group> inner_;
  Stage what_;
};

}  // namespace

std::unique_ptr<Group> staged(std::unique_ptr<Group> inner, Stage what) {
  return std::make_unique<Staged>(std::move(inner), what);
}

}  // namespace syncopate::comm
