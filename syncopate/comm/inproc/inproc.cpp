#include "syncopate/comm/inproc/inproc.h"

#include <ATen/ATen.h>

#include "syncopate/base/error.h"
#include "syncopate/comm/inproc/hub.h"
#include "syncopate/comm/operations/own.h"
#include "syncopate/comm/operations/reduce_in_order.h"
#include "syncopate/comm/operations/reduce_type.h"

namespace syncopate::comm {
namespace {

/// Sums in rank order, whoever comes first. In rank 0's own tensor where its type can hold the sum; ranks may
/// be on different devices.
at::Tensor total_of(const std::vector<Contribution>& contributions, Op op) {
  const at::Tensor& first = contributions[0].tensor;
  at::Tensor total = first.to(reduced_as(first.scalar_type()));
  for (size_t r = 1; r < contributions.size(); ++r) {
    reduce_next(total, contributions[r].tensor.to(total.device(), total.scalar_type()), op);
  }
  return total;
}

/// Hands every rank the same bits.
void reduce(std::vector<Contribution>& contributions, Op op) {
  const at::Tensor total = total_of(contributions, op);
  for (Contribution& contribution : contributions) {
    if (!contribution.tensor.is_same(total)) contribution.tensor.copy_(total);
  }
}

class InProcessOperation : public Pending::Work {
 public:
  InProcessOperation(std::shared_ptr<Hub> hub, int rank, std::chrono::milliseconds timeout,
                     std::shared_ptr<Hub::Slot> slot)
      : hub_(std::move(hub)), rank_(rank), timeout_(timeout), slot_(std::move(slot)) {}
  void wait() override { hub_->wait(rank_, timeout_, *slot_); }

 private:
  std::shared_ptr<Hub> hub_;
  int rank_;
  std::chrono::milliseconds timeout_;
  std::shared_ptr<Hub::Slot> slot_;
};

class InProcessGroup : public Group {
 public:
  InProcessGroup(std::shared_ptr<Hub> hub, int rank, std::chrono::milliseconds timeout)
      : hub_(std::move(hub)), rank_(rank), timeout_(timeout) {}
  ~InProcessGroup() override { hub_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return hub_->size(); }

  Pending all_reduce(at::Tensor tensor, Op op) override {
    return meet({"all_reduce", static_cast<int>(op), own(tensor), {}},
                [op](std::vector<Contribution>& contributions) { reduce(contributions, op); });
  }

  at::Tensor common(int64_t count, at::ScalarType type) override {
    const at::Tensor memory = at::zeros({1}, type).expand({count});  // which is not there yet
    meet({"common", static_cast<int>(type), memory, {}}, [](std::vector<Contribution>& contributions) {
      const at::Tensor all = at::zeros_like(contributions.front().tensor, at::MemoryFormat::Contiguous);
      for (Contribution& each : contributions) each.tensor.set_data(all);
    }).wait();
    return memory;
  }

  Pending sum_into(at::Tensor total, at::Tensor mine) override {
    return meet({"sum_into", 0, own(mine), {own(total)}}, [](std::vector<Contribution>& contributions) {
      Contribution& first = contributions.front();
      const at::Tensor into = first.list.front();
      first.tensor = into.copy_(first.tensor);  // summed there where the type can hold it
      const at::Tensor made = total_of(contributions, Op::kSum);
      if (!made.is_same(into)) into.copy_(made);
    });
  }

  Pending sum_rows_into(at::Tensor total, at::Tensor mine, at::Tensor in_use, at::Tensor numbers) override {
    return meet({"sum_rows_into", 0, own(mine), {own(in_use), own(total), own(numbers)}},
                [](std::vector<Contribution>& contributions) {
                  std::vector<const void*> tables, used;
                  for (const Contribution& each : contributions) {
                    tables.push_back(each.tensor.data_ptr());
                    used.push_back(each.list[0].data_ptr());
                  }
                  const at::Tensor &all = contributions[0].list[1], &rows = contributions[0].list[2];
                  sum_used_rows(tables, used, rows, 0, rows.numel(), all.size(1), all.data_ptr());
                });
  }

  Pending broadcast(at::Tensor tensor, int root) override {
    return meet({"broadcast", root, own(tensor), {}}, [root](std::vector<Contribution>& contributions) {
      for (Contribution& contribution : contributions) {
        if (contribution.tensor.data_ptr() != contributions.at(root).tensor.data_ptr())
          contribution.tensor.copy_(contributions.at(root).tensor);
      }
    });
  }

  Pending gather(std::vector<at::Tensor> into, at::Tensor mine, int root) override {
    check(rank_ != root || into.size() == static_cast<size_t>(size()),
          "gather needs one tensor per rank at its root");
    return meet({"gather", root, own(mine), own(into)}, [root](std::vector<Contribution>& contributions) {
      for (size_t r = 0; r < contributions.size(); ++r)
        contributions.at(root).list[r].copy_(contributions[r].tensor);
    });
  }

  Pending scatter(at::Tensor into, std::vector<at::Tensor> from, int root) override {
    check(rank_ != root || from.size() == static_cast<size_t>(size()),
          "scatter needs one tensor per rank at its root");
    return meet({"scatter", root, own(into), own(from)}, [root](std::vector<Contribution>& contributions) {
      for (size_t r = 0; r < contributions.size(); ++r)
        contributions[r].tensor.copy_(contributions.at(root).list[r]);
    });
  }

  Pending all_gather(std::vector<at::Tensor> into, at::Tensor mine) override {
    check(into.size() == static_cast<size_t>(size()), "all_gather needs one tensor per rank");
    return meet({"all_gather", 0, own(mine), own(into)}, [](std::vector<Contribution>& contributions) {
      for (Contribution& contribution : contributions) {
        for (size_t r = 0; r < contributions.size(); ++r) contribution.list[r].copy_(contributions[r].tensor);
      }
    });
  }

  Pending send(at::Tensor tensor, int to, int tag) override {
    return pending(hub_->send(rank_, to, tag, own(tensor)));
  }

  Pending receive(at::Tensor into, int from, int tag) override {
    return pending(hub_->receive(rank_, from, tag, own(into)));
  }

  void barrier() override {
    meet({"barrier", 0, {}, {}}, [](std::vector<Contribution>&) {}).wait();
  }

  std::unique_ptr<Group> split(int color, int key) override {
    const auto [hub, rank] = hub_->split(rank_, timeout_, color, key);
    return std::make_unique<InProcessGroup>(hub, rank, timeout_);
  }

  void set_timeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }

 private:
  Pending meet(Contribution contribution, Hub::Action action) {
    return pending(hub_->meet(rank_, std::move(contribution), action));
  }

  Pending pending(std::shared_ptr<Hub::Slot> slot) {
    return Pending(std::make_unique<InProcessOperation>(hub_, rank_, timeout_, std::move(slot)));
  }

  std::shared_ptr<Hub> hub_;
  int rank_;
  std::chrono::milliseconds timeout_;
};

}  // namespace

std::vector<std::unique_ptr<Group>> open_in_process(int size, std::chrono::milliseconds timeout) {
  check(size >= 1, "a group has at least one rank");
  const auto hub = std::make_shared<Hub>(size);
  std::vector<std::unique_ptr<Group>> groups;
  for (int rank = 0; rank < size; ++rank)
    groups.push_back(std::make_unique<InProcessGroup>(hub, rank, timeout));
  return groups;
}

std::unique_ptr<Group> open_alone() { return std::move(open_in_process(1, std::chrono::seconds(1)).front()); }

}  // namespace syncopate::comm
