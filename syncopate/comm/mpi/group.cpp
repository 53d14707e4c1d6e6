#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/comm/mpi.h"
#include "syncopate/comm/mpi/collectives.h"
#include "syncopate/comm/mpi/link.h"
#include "syncopate/comm/mpi/post.h"
#include "syncopate/comm/mpi/state.h"
#include "syncopate/comm/operations/job_queue.h"
#include "syncopate/comm/operations/own.h"
#include "syncopate/comm/operations/queued.h"
#include "syncopate/comm/together/members.h"

namespace syncopate::comm {
namespace {

using std::chrono::milliseconds;

class MpiLetter : public Pending::Work {
 public:
  MpiLetter(std::shared_ptr<MpiState> state, const char* operation, std::shared_ptr<MpiPost::Letter> letter)
      : state_(std::move(state)), operation_(operation), letter_(std::move(letter)) {}

  void wait() override {
    Waits& waits = *state_->waits;
    if (!arrived()) waits.awaited([&] { waits.dying([&] { deliver(); }); });
    note_end(letter_->ended);
  }

 private:
  /// Then it does not matter what has become of the group.
  bool arrived() const { return letter_->look() && letter_->error.empty(); }

  void deliver() {
    Wait wait(*state_->waits, operation_);
    state_->until([&] { return letter_->look(); }, [&] { return letter_->awaited(); }, operation_, &wait);
    if (!letter_->error.empty()) throw CommError("{}", letter_->error);
  }

  std::shared_ptr<MpiState> state_;
  const char* operation_;
  std::shared_ptr<MpiPost::Letter> letter_;
};

void await(Waits& waits, const char* what, const std::shared_future<void>& result) {
  waits.wait(what, [&](milliseconds slice) {
    return result.wait_for(std::min(slice, milliseconds(100))) == std::future_status::ready;
  });
  result.get();
}

std::shared_ptr<const MpiLink> connect(Waits& waits, std::vector<int> processes) {
  auto link = std::make_shared<MpiLink>(std::move(processes));
  await(waits, "connecting", MpiProcess::instance().run([link] { link->connect(); }));
  return link;
}

class MpiGroup : public Group {
 public:
  MpiGroup(std::shared_ptr<Waits> waits, std::vector<int> processes, int rank)
      : state_(std::make_shared<MpiState>()), queue_(std::make_shared<JobQueue>()) {
    state_->rank = rank;
    state_->size = static_cast<int>(processes.size());
    state_->link = connect(*waits, std::move(processes));
    state_->waits = std::move(waits);
  }

  ~MpiGroup() override { state_->closed.store(true); }

  int rank() const override { return state_->rank; }
  int size() const override { return state_->size; }

  Pending all_reduce(at::Tensor tensor, Op op) override {
    if (tensor.numel() == 0) return nothing();
    return collective("all_reduce",
                      [mine = own(tensor), op](const MpiCollectives& all) { all.all_reduce(mine, op); });
  }

  Pending broadcast(at::Tensor tensor, int root) override {
    if (tensor.numel() == 0) return nothing();
    return collective("broadcast",
                      [mine = own(tensor), root](const MpiCollectives& all) { all.broadcast(mine, root); });
  }

  Pending gather(std::vector<at::Tensor> into, at::Tensor mine, int root) override {
    require_one_each(into, mine, rank() == root);
    if (mine.numel() == 0) return nothing();
    return collective("gather", [into = own(into), mine = own(mine), root](const MpiCollectives& all) {
      all.gather(into, mine, root);
    });
  }

  Pending scatter(at::Tensor into, std::vector<at::Tensor> from, int root) override {
    require_one_each(from, into, rank() == root);
    if (into.numel() == 0) return nothing();
    return collective("scatter", [into = own(into), from = own(from), root](const MpiCollectives& all) {
      all.scatter(into, from, root);
    });
  }

  Pending all_gather(std::vector<at::Tensor> into, at::Tensor mine) override {
    require_one_each(into, mine, true);
    if (mine.numel() == 0) return nothing();
    return collective("all_gather", [into = own(into), mine = own(mine)](const MpiCollectives& all) {
      all.all_gather(into, mine);
    });
  }

  Pending send(at::Tensor tensor, int to, int tag) override {
    check(to >= 0 && to < size() && to != rank(), "a rank sends to another one of its group");
    if (tensor.numel() == 0) return nothing();
    return posted("send", tag, [mine = own(tensor), to, tag](MpiCalls& calls) {
      calls.keep(mine);
      calls.send(mine.data_ptr(), mine.nbytes(), to, tag);
    });
  }

  Pending receive(at::Tensor into, int from, int tag) override {
    check(from == kAnyRank || (from >= 0 && from < size() && from != rank()),
          "a rank receives from another one of its group");
    if (into.numel() == 0) return nothing();
    return posted("receive", tag, [mine = own(into), from, tag](MpiCalls& calls) {
      calls.keep(mine);
      calls.receive(mine.data_ptr(), mine.nbytes(), from, tag);
    });
  }

  void barrier() override {
    collective("barrier", [](const MpiCollectives& all) { all.barrier(); }).wait();
  }

  std::unique_ptr<Group> split(int color, int key) override {
    const std::vector<int> ranks = members(*this, color, key);
    if (ranks.size() == 1) return open_alone();
    std::vector<int> processes;
    for (const int each : ranks) processes.push_back(state_->link->process(each));
    return std::make_unique<MpiGroup>(
        std::make_shared<Waits>(state_->waits->lifeline(), state_->waits->timeout()), std::move(processes),
        place_among(ranks, rank()));
  }

  void set_timeout(milliseconds timeout) override { state_->waits->set_timeout(timeout); }

 private:
  Pending nothing() const {
    state_->waits->check();
    return {};
  }

  void require_one_each(const std::vector<at::Tensor>& list, const at::Tensor& tensor, bool has_list) const {
    check(!has_list || list.size() == static_cast<size_t>(size()), "there is one tensor for every rank");
    require_alike(list, tensor);
  }

  template <typename Body>
  Pending collective(const char* operation, Body body) {
    state_->waits->check();
    std::shared_ptr<JobQueue::Job> job =
        queue_->push([state = state_, operation, body = std::move(body)](bool by_waiter) {
          std::optional<Wait> wait;
          if (by_waiter) wait.emplace(*state->waits, operation);
          state->waits->dying([&] { body(MpiCollectives(state, operation, wait ? &*wait : nullptr)); });
        });
    return queued(state_->waits, queue_, operation, std::move(job));
  }

  template <typename Start>
  Pending posted(const char* operation, int tag, const Start& start) {
    check(tag >= 0 && tag < MpiProcess::instance().highest_tag(), "a tag is one that MPI has");
    auto letter = std::make_shared<MpiPost::Letter>(state_->link);
    state_->waits->dying([&] { start(letter->calls); });
    if (!letter->look()) {
      if (!post_) post_ = std::make_unique<MpiPost>();
      post_->add(letter);
    }
    return Pending(std::make_unique<MpiLetter>(state_, operation, std::move(letter)));
  }

  std::shared_ptr<MpiState> state_;
  std::shared_ptr<JobQueue> queue_;
  std::unique_ptr<MpiPost> post_;
};

/// How many processes an MPI launcher has started, this one included; 0: none has.
int started_by_mpi() {
  const auto number = [](const char* name) {
    const char* const text = std::getenv(name);
    return static_cast<int>(text != nullptr ? parse_integer(text).value_or(0) : 0);
  };
  if (const int size = number("OMPI_COMM_WORLD_SIZE"); size > 0) return size;
  // srun --mpi=pmix or pmi2, which tell a process who it is and Slurm how many there are.
  if (std::getenv("PMIX_RANK") == nullptr && std::getenv("PMI_RANK") == nullptr) return 0;
  return std::max(number("PMI_SIZE"), number("SLURM_STEP_NUM_TASKS"));
}

}  // namespace

void require_mpi(int size) {
  if (started_by_mpi() == size) return;
  throw ConfigError(
      "the backend mpi is for workers that MPI's launcher has started: mpirun -n {0} (or srun --mpi=pmix -n "
      "{0}) "
      "before the command, without --workers; else use gloo or shm",
      size);
}

std::unique_ptr<Group> open_mpi(std::shared_ptr<lifeline::Lifeline> lifeline, milliseconds timeout) {
  const int rank = lifeline->rank(), size = lifeline->size();
  require_mpi(size);
  auto waits = std::make_shared<Waits>(std::move(lifeline), timeout);
  MpiProcess& mpi = MpiProcess::instance();
  await(*waits, "starting MPI", mpi.start());
  if (mpi.size() != size || mpi.rank() != rank) {
    throw ConfigError("MPI knows this process as {} of {}, but in the run it is rank {} of {}; use gloo",
                      mpi.rank(), mpi.size(), rank, size);
  }
  std::vector<int> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return std::make_unique<MpiGroup>(std::move(waits), std::move(all), rank);
}

void close_mpi(lifeline::Lifeline& lifeline) {
  MpiProcess& mpi = MpiProcess::instance();
  if (!mpi.started()) return;
  const lifeline::Lifeline::Waiting waiting(lifeline);
  say_farewell(lifeline, mpi.rank());
  const std::shared_future<void> end = mpi.end();
  do {
    lifeline.check();
  } while (end.wait_for(milliseconds(50)) != std::future_status::ready);
  end.get();
}

}  // namespace syncopate::comm
