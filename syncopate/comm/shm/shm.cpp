#include "syncopate/comm/shm/shm.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/comm/operations/completion.h"
#include "syncopate/comm/operations/job_queue.h"
#include "syncopate/comm/operations/own.h"
#include "syncopate/comm/operations/queued.h"
#include "syncopate/comm/operations/waits.h"
#include "syncopate/comm/shm/collectives.h"
#include "syncopate/comm/shm/post.h"
#include "syncopate/comm/together/members.h"

namespace syncopate::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSlice(250);

inline void pause_a_moment() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// What a group's operations share: they may outlive it.
class ShmState {
 public:
  ShmState(std::shared_ptr<Waits> how, const ShmPlace& place)
      : waits(std::move(how)),
        region(std::make_shared<ShmRegion>(*waits, place)),
        collectives(region),
        post(region),
        has_cores_(std::thread::hardware_concurrency() >= static_cast<unsigned>(place.size)) {}

  /// Nobody carries out an operation any more.
  ~ShmState() { region->leave(waits->lifeline()->rank()); }

  /// Until `ready`, which changes when `rank` rings the bell, or until that rank has left. `wait` has the
  /// deadline; null: of the group's own threads, which have none. `operation`, for sentences.
  void await(int rank, Bell& bell, const char* operation, Wait* wait, const std::function<bool()>& ready) {
    if (ready() || spin(ready)) return;
    const auto over = [&] { return ready() || who_left(rank) || stopped.load(); };
    const auto sleep = [&](milliseconds slice) {
      bell.sleep(slice, over);
      const auto left = who_left(rank);  // first: then what it has done is there to be seen
      if (ready()) return true;
      if (closed.load()) throw CommError("the group was destroyed while it was used");
      if (left) waits->deserted(operation, *left, Waits::kGrace);
      return false;
    };
    if (wait != nullptr) return wait->until(sleep);
    do {
      waits->check();
    } while (!sleep(kSlice));
  }

  /// The lifeline's number of a rank that has left; nothing while it is here, and for kAnyRank.
  std::optional<int> who_left(int rank) const {
    const int32_t left = rank == kAnyRank ? 0 : region->desk(rank).left.load();
    return left == 0 ? std::nullopt : std::optional<int>(left - 1);
  }

  /// Wakes whoever sleeps: the run has failed, or the group is gone.
  void stop() {
    stopped.store(true);
    region->wake_all();
  }

  std::shared_ptr<Waits> waits;
  std::shared_ptr<ShmRegion> region;
  ShmCollectives collectives;
  ShmPost post;
  std::atomic<bool> stopped{false};  ///< nobody sleeps any more
  std::atomic<bool> closed{false};   ///< the group is gone

 private:
  /// Others are often a few microseconds behind: sleeping and waking takes longer. Not where they need this
  /// core.
  bool spin(const std::function<bool()>& ready) const {
    constexpr std::chrono::microseconds kLong(20);
    constexpr int kBetweenLooks = 16;
    if (!has_cores_) return false;
    const Clock::time_point until = Clock::now() + kLong;
    do {
      for (int k = 0; k < kBetweenLooks; ++k) {
        if (ready()) return true;
        pause_a_moment();
      }
    } while (Clock::now() < until);
    return false;
  }

  bool has_cores_;
};

class ShmLetter : public Pending::Work {
 public:
  ShmLetter(std::shared_ptr<ShmState> state, const char* operation, std::shared_ptr<ShmPost::Letter> letter)
      : state_(std::move(state)), operation_(operation), letter_(std::move(letter)) {}

  void wait() override {
    if (!arrived()) state_->waits->awaited([&] { state_->waits->dying([&] { deliver(); }); });
    note_end(letter_->ended);
  }

 private:
  /// Then it does not matter what has become of the group.
  bool arrived() const { return state_->post.done(*letter_) && letter_->error.empty(); }

  void deliver() {
    Wait wait(*state_->waits, operation_);
    while (!state_->post.done(*letter_)) {
      if (state_->post.move()) continue;
      // In this order: a letter that the group's own thread has moved is done once nothing is left to move.
      state_->await(letter_->peer, state_->region->mine().post, operation_, &wait,
                    [&] { return state_->post.stirred() || state_->post.done(*letter_); });
    }
    if (!letter_->error.empty()) throw CommError("{}", letter_->error);
  }

  std::shared_ptr<ShmState> state_;
  const char* operation_;
  std::shared_ptr<ShmPost::Letter> letter_;
};

class ShmGroup : public Group {
 public:
  ShmGroup(std::shared_ptr<Waits> waits, ShmPlace place)
      : place_(std::move(place)),
        state_(std::make_shared<ShmState>(std::move(waits), place_)),
        queue_(std::make_shared<JobQueue>()) {
    listening_ = state_->waits->lifeline()->listen([state = std::weak_ptr(state_)] {
      if (const auto there = state.lock()) there->stop();
    });
  }

  ~ShmGroup() override {
    state_->waits->lifeline()->unlisten(listening_);
    state_->closed.store(true);
    state_->stop();
    if (postman_.joinable()) postman_.join();
  }

  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }

  Pending all_reduce(at::Tensor tensor, Op op) override {
    if (tensor.numel() == 0) return nothing();
    if (const auto place = windows_.find(tensor, rank()); place && ShmCollectives::pays_in_place(tensor)) {
      return collective("all_reduce",
                        [mine = own(tensor), place = *place, op](ShmCollectives& all, const auto& await) {
                          all.all_reduce_in_place(mine, place, op, at::Tensor(), await);
                        });
    }
    return collective("all_reduce", [mine = own(tensor), op](ShmCollectives& all, const auto& await) {
      all.all_reduce(mine, op, await);
    });
  }

  Pending sum_into(at::Tensor total, at::Tensor mine) override {
    require_alike({total}, mine);
    if (mine.numel() == 0) return nothing();
    return collective("sum_into", [total = own(total), mine = own(mine), place = windows_.find(mine, rank())](
                                      ShmCollectives& all, const auto& await) {
      place ? all.all_reduce_in_place(mine, *place, Op::kSum, total, await)
            : all.sum_into(total, mine, await);
    });
  }

  Pending sum_rows_into(at::Tensor total, at::Tensor mine, at::Tensor in_use, at::Tensor numbers) override {
    return collective(  // also of no rows: nobody ends before all have begun
        "sum_rows_into",
        [total = own(total), mine = own(mine), numbers = own(numbers), table = windows_.find(mine, rank()),
         used = windows_.find(in_use, rank())](ShmCollectives& all, const auto& await) {
          table&& used ? all.sum_rows_in_place(total, *table, *used, numbers, await)
                       : all.sum_rows(total, mine, numbers, await);
        });
  }

  Pending broadcast(at::Tensor tensor, int root) override {
    if (tensor.numel() == 0) return nothing();
    return collective("broadcast", [mine = own(tensor), root](ShmCollectives& all, const auto& await) {
      all.broadcast(mine, root, await);
    });
  }

  Pending gather(std::vector<at::Tensor> into, at::Tensor mine, int root) override {
    check(rank() != root || into.size() == static_cast<size_t>(size()),
          "gather needs one tensor per rank at its root");
    require_alike(into, mine);
    if (mine.numel() == 0) return nothing();
    return collective("gather",
                      [into = own(into), mine = own(mine), root](ShmCollectives& all, const auto& await) {
                        all.gather(into, mine, root, await);
                      });
  }

  Pending scatter(at::Tensor into, std::vector<at::Tensor> from, int root) override {
    check(rank() != root || from.size() == static_cast<size_t>(size()),
          "scatter needs one tensor per rank at its root");
    require_alike(from, into);
    if (into.numel() == 0) return nothing();
    return collective("scatter",
                      [into = own(into), from = own(from), root](ShmCollectives& all, const auto& await) {
                        all.scatter(into, from, root, await);
                      });
  }

  Pending all_gather(std::vector<at::Tensor> into, at::Tensor mine) override {
    check(into.size() == static_cast<size_t>(size()), "all_gather needs one tensor per rank");
    require_alike(into, mine);
    if (mine.numel() == 0) return nothing();
    return collective("all_gather",
                      [into = own(into), mine = own(mine)](ShmCollectives& all, const auto& await) {
                        all.all_gather(into, mine, await);
                      });
  }

  Pending send(at::Tensor tensor, int to, int tag) override {
    check(to >= 0 && to < size() && to != rank(), "a rank sends to another one of its group");
    if (tensor.numel() == 0) return nothing();
    std::shared_ptr<ShmPost::Letter> letter;
    state_->waits->dying([&] { letter = state_->post.send(own(tensor), to, tag); });
    return posted("send", std::move(letter));
  }

  Pending receive(at::Tensor into, int from, int tag) override {
    check(from == kAnyRank || (from >= 0 && from < size() && from != rank()),
          "a rank receives from another one of its group");
    if (into.numel() == 0) return nothing();
    state_->waits->check();
    return posted("receive", state_->post.receive(own(into), from, tag));
  }

  void barrier() override {
    collective("barrier", [](ShmCollectives& all, const auto& await) { all.barrier(await); }).wait();
  }

  std::unique_ptr<Group> split(int color, int key) override {
    const std::vector<int> ranks = members(*this, color, key);
    const int64_t number = splits_++;
    if (ranks.size() == 1) return open_alone();
    ShmPlace place{fmt::format("{}/{}/{}", place_.prefix, number, color), place_among(ranks, rank()),
                   static_cast<int>(ranks.size())};
    return open_shm(std::make_shared<Waits>(state_->waits->lifeline(), state_->waits->timeout()),
                    std::move(place));
  }

  at::Tensor room(int64_t count, at::ScalarType type) override {
    return count > 0 ? windows_.open(*this, count, type) : Group::room(count, type);
  }

  at::Tensor common(int64_t count, at::ScalarType type) override {
    return count > 0 ? ShmWindows::open_common(*this, count, type) : Group::common(count, type);
  }

  void set_timeout(milliseconds timeout) override { state_->waits->set_timeout(timeout); }

 private:
  Pending nothing() const {
    state_->waits->check();
    return {};
  }

  template <typename Body>
  Pending collective(const char* operation, Body body) {
    state_->waits->check();
    std::shared_ptr<JobQueue::Job> job =
        queue_->push([state = state_, operation, body = std::move(body)](bool by_waiter) {
          std::optional<Wait> wait;
          if (by_waiter) wait.emplace(*state->waits, operation);
          state->waits->dying([&] {
            body(state->collectives, [&](int rank, const std::function<bool()>& ready) {
              state->await(rank, state->region->desk(rank).bell, operation, wait ? &*wait : nullptr, ready);
            });
          });
        });
    return queued(state_->waits, queue_, operation, std::move(job));
  }

  Pending posted(const char* operation, std::shared_ptr<ShmPost::Letter> letter) {
    if (!postman_.joinable()) postman_ = std::thread([this] { deliver(); });
    state_->region->mine().post.ring();
    return Pending(std::make_unique<ShmLetter>(state_, operation, std::move(letter)));
  }

  /// Letters move on while this rank computes, until the group is gone or dead.
  void deliver() {
    Bell& bell = state_->region->mine().post;
    try {
      while (!state_->stopped.load()) {
        if (state_->post.move()) continue;
        bell.sleep(kSlice, [&] { return state_->post.stirred() || state_->stopped.load(); });
        state_->waits->check();
      }
    } catch (const std::exception& error) {
      state_->waits->die(error.what());  // who waits for a letter learns of it
      state_->stop();
    }
  }

  ShmPlace place_;
  std::shared_ptr<ShmState> state_;
  std::shared_ptr<JobQueue> queue_;
  ShmWindows windows_;
  std::thread postman_;
  int listening_ = 0;
  int64_t splits_ = 0;
};

}  // namespace

std::unique_ptr<Group> open_shm(std::shared_ptr<lifeline::Lifeline> lifeline, milliseconds timeout) {
  ShmPlace place{"shm", lifeline->rank(), lifeline->size()};
  return open_shm(std::make_shared<Waits>(std::move(lifeline), timeout), std::move(place));
}

std::unique_ptr<Group> open_shm(std::shared_ptr<Waits> waits, ShmPlace place) {
  return std::make_unique<ShmGroup>(std::move(waits), std::move(place));
}

}  // namespace syncopate::comm
