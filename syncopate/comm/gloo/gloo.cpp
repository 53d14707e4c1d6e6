#include "syncopate/comm/gloo/gloo.h"

#include <ATen/ATen.h>
#include <signal.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "syncopate/base/error.h"
#include "syncopate/comm/gloo/store.h"
#include "syncopate/comm/gloo/work.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/comm/operations/connect_aside.h"
#include "syncopate/comm/operations/own.h"
#include "syncopate/comm/operations/reduce_type.h"
#include "syncopate/comm/together/members.h"

namespace syncopate::comm {
namespace {

using std::chrono::milliseconds;
using Backend = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

/// Gloo writes into sockets whose other end may have closed, from threads of its own; by default that signal
/// ends the process before anybody hears of the lost peer. A program's own choice stands.
void survive_closed_sockets() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

Backend connect(const std::shared_ptr<Waits>& waits, const GlooPlace& place) {
  survive_closed_sockets();
  const std::string trouble =
      fmt::format("rank {} cannot connect to the others from {}", place.rank, place.address);
  return connect_aside(waits, trouble, [waits, place] {
    const auto store = store_over(waits->lifeline(), waits->timeout());
    // Our own waits keep the deadline; Gloo's clock would also run while the whole run is stopped by Ctrl-Z.
    auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::hours(24));
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(place.address));
    const auto scoped = c10::make_intrusive<c10d::PrefixStore>(place.prefix, store);
    return c10::make_intrusive<c10d::ProcessGroupGloo>(scoped, place.rank, place.size, options);
  });
}

/// A rank is connected when its own connections stand; were it to finish and close them at once, it would cut
/// off those that are still connecting. So nobody starts before all are ready.
void await_all_connected(Waits& waits, const GlooPlace& place) {
  const std::string count = place.prefix + "/connected", all = place.prefix + "/all-connected";
  lifeline::Lifeline& line = *waits.lifeline();
  const lifeline::Lifeline::Waiting waiting(line);
  if (line.add(count, 1) == place.size) line.set(all, "yes");
  line.get(all, waits.timeout());
}

class GlooGroup : public Group {
 public:
  GlooGroup(std::shared_ptr<Waits> waits, GlooPlace place)
      : waits_(std::move(waits)), place_(std::move(place)), backend_(connect(waits_, place_)) {
    await_all_connected(*waits_, place_);
  }

  ~GlooGroup() override {
    // Gloo's destructor waits for operations under way: after a failure it would wait in vain, so it is left
    // behind.
    const bool idle = std::all_of(under_way_.begin(), under_way_.end(),
                                  [](const auto& work) { return work->isCompleted(); });
    if (waits_->dead() || !idle) (void)backend_.release();
  }

  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }

  Pending all_reduce(at::Tensor tensor, Op op) override {
    check(tensor.is_contiguous(), "a group takes contiguous tensors");
    if (tensor.numel() == 0) return nothing();
    c10d::AllreduceOptions options;
    options.reduceOp = reduce_op<c10d::ReduceOp>(op);
    const at::Tensor mine = tensor.detach();
    const at::ScalarType type = reduced_as(mine.scalar_type());
    const at::Tensor wide = mine.to(type);  // the tensor itself where the type is the same
    std::vector<at::Tensor> tensors{wide};
    std::function<void()> after;
    if (type != mine.scalar_type()) after = [mine, wide] { mine.copy_(wide); };
    return collective(
        "all_reduce", [&] { return backend_->allreduce(tensors, options); }, after);
  }

  Pending broadcast(at::Tensor tensor, int root) override {
    if (tensor.numel() == 0) return nothing();
    c10d::BroadcastOptions options;
    options.rootRank = root;
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    return collective("broadcast", [&] { return backend_->broadcast(tensors, options); });
  }

  Pending gather(std::vector<at::Tensor> into, at::Tensor mine, int root) override {
    if (mine.numel() == 0) return nothing();
    c10d::GatherOptions options;
    options.rootRank = root;
    std::vector<std::vector<at::Tensor>> outputs;
    if (rank() == root) outputs.push_back(as_bytes(into));
    std::vector<at::Tensor> inputs{as_bytes(mine)};
    return collective("gather", [&] { return backend_->gather(outputs, inputs, options); });
  }

  Pending scatter(at::Tensor into, std::vector<at::Tensor> from, int root) override {
    if (into.numel() == 0) return nothing();
    c10d::ScatterOptions options;
    options.rootRank = root;
    std::vector<at::Tensor> outputs{as_bytes(into)};
    std::vector<std::vector<at::Tensor>> inputs;
    if (rank() == root) inputs.push_back(as_bytes(from));
    return collective("scatter", [&] { return backend_->scatter(outputs, inputs, options); });
  }

  Pending all_gather(std::vector<at::Tensor> into, at::Tensor mine) override {
    if (mine.numel() == 0) return nothing();
    std::vector<std::vector<at::Tensor>> outputs{as_bytes(into)};
    std::vector<at::Tensor> inputs{as_bytes(mine)};
    return collective("all_gather", [&] { return backend_->allgather(outputs, inputs); });
  }

  Pending send(at::Tensor tensor, int to, int tag) override {
    if (tensor.numel() == 0) return nothing();
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    return start("send", false, {}, [&] { return backend_->send(tensors, to, tag); });
  }

  Pending receive(at::Tensor into, int from, int tag) override {
    if (into.numel() == 0) return nothing();
    std::vector<at::Tensor> tensors{as_bytes(into)};
    return start("receive", false, {}, [&] {
      return from == kAnyRank ? backend_->recvAnysource(tensors, tag) : backend_->recv(tensors, from, tag);
    });
  }

  void barrier() override {
    collective("barrier", [&] { return backend_->barrier(); }).wait();
  }

  std::unique_ptr<Group> split(int color, int key) override {
    const std::vector<int> ranks = members(*this, color, key);
    const int64_t number = splits_++;
    if (ranks.size() == 1) return open_alone();
    GlooPlace place = place_;
    place.prefix = fmt::format("{}/{}/{}", place_.prefix, number, color);
    place.size = static_cast<int>(ranks.size());
    place.rank = place_among(ranks, rank());
    return std::make_unique<GlooGroup>(std::make_shared<Waits>(waits_->lifeline(), waits_->timeout()), place);
  }

  void set_timeout(milliseconds timeout) override { waits_->set_timeout(timeout); }

 private:
  Pending nothing() const {
    waits_->check();
    return {};
  }

  template <typename Call>
  Pending collective(const char* operation, Call call, std::function<void()> after = {}) {
    return start(operation, true, std::move(after), call);
  }

  template <typename Call>
  Pending start(const char* operation, bool is_collective, std::function<void()> after, Call call) {
    waits_->check();
    std::erase_if(under_way_, [](const auto& work) { return work->isCompleted(); });
    try {
      c10::intrusive_ptr<c10d::Work> work = call();
      under_way_.push_back(work);
      return pending_over(waits_, operation, std::move(work), is_collective, std::move(after));
    } catch (const c10::Error& error) {
      throw InternalError(fmt::format("{}: {}", operation, error.what_without_backtrace()));
    } catch (const std::exception& error) {  // Gloo's own: the connection is gone
      waits_->broken(operation, error.what());
    }
  }

  std::shared_ptr<Waits> waits_;
  GlooPlace place_;
  Backend backend_;
  std::vector<c10::intrusive_ptr<c10d::Work>> under_way_;
  int64_t splits_ = 0;
};

}  // namespace

std::unique_ptr<Group> open_gloo(std::shared_ptr<lifeline::Lifeline> lifeline, milliseconds timeout,
                                 const std::string& interface_address) {
  GlooPlace place{"gloo", interface_address, lifeline->rank(), lifeline->size()};
  if (place.address.empty()) place.address = lifeline->local().host;
  return open_gloo(std::make_shared<Waits>(std::move(lifeline), timeout), std::move(place));
}

std::unique_ptr<Group> open_gloo(std::shared_ptr<Waits> waits, GlooPlace place) {
  return std::make_unique<GlooGroup>(std::move(waits), std::move(place));
}

}  // namespace syncopate::comm
