#include "syncopate/run/replicas.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/comm/inproc/inproc.h"

namespace syncopate::run {
namespace {

/// How long the others may take to notice that one of them failed.
constexpr std::chrono::milliseconds kTimeToNotice(2000);

/// What the threads tell the one that waits for them. Outlives a thread that is left behind.
class Board {
 public:
  explicit Board(int workers) : running_(workers) {}

  void done(int rank, WorkerResult result) {
    const std::lock_guard lock(mutex_);
    if (rank == 0) result_ = std::move(result);
    --running_;
    changed_.notify_all();
  }

  /// A worker that lost another one is its victim: any other failure is the cause, whoever comes first.
  void failed(std::exception_ptr failure, bool victim) {
    const std::lock_guard lock(mutex_);
    if (!cause_ || (cause_is_victim_ && !victim)) {
      cause_ = std::move(failure);
      cause_is_victim_ = victim;
    }
    --running_;
    changed_.notify_all();
  }

  WorkerResult await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return running_ == 0 || cause_; });
    if (cause_) {
      changed_.wait_for(lock, kTimeToNotice, [this] { return running_ == 0; });
      std::rethrow_exception(cause_);
    }
    return std::move(result_);
  }

  /// Every worker has read the same data: all keep rank 0's.
  void keep_one_copy(comm::Group& group, WorkerOptions::Data& train, WorkerOptions::Data& test) {
    if (group.rank() == 0) data_ = {train, test};
    group.barrier();
    std::tie(train, test) = data_;
    group.barrier();
    if (group.rank() == 0) data_ = {};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_;
  WorkerResult result_;  ///< rank 0's
  std::exception_ptr cause_;
  bool cause_is_victim_ = false;
  std::pair<WorkerOptions::Data, WorkerOptions::Data> data_;  ///< between keep_one_copy's barriers
};

void work(Board& board, const spec::RunSpec& spec, const World& world, const WorkerOptions& options,
          std::unique_ptr<comm::Group> group) {
  try {
    board.done(world.rank, run_worker(spec, world, options, std::move(group)));
  } catch (const Error& error) {
    board.failed(std::current_exception(), error.code() == ExitCode::kComm);
  } catch (...) {
    board.failed(std::current_exception(), false);
  }
}

}  // namespace

WorkerResult run_replicas(const spec::RunSpec& spec, const World& world, const WorkerOptions& options) {
  if (world.size > 1) {
    throw ConfigError(
        "{} drives all workers from one process, but {} started {}; use ddp there, or give --workers {} to "
        "one process",
        spec.strategy.name, world.launcher == "manual" ? "--world-size says that you" : world.launcher,
        world.size, world.size);
  }
  const auto workers = static_cast<int>(spec.comm.workers);
  const auto timeout = std::chrono::milliseconds(std::llround(1e3 * spec.comm.timeout));
  const auto board = std::make_shared<Board>(workers);
  auto groups = comm::open_in_process(workers, timeout);
  WorkerOptions shared = options;
  shared.keep_one_copy = [board](comm::Group& group, WorkerOptions::Data& train, WorkerOptions::Data& test) {
    board->keep_one_copy(group, train, test);
  };
  for (int rank = 0; rank < workers; ++rank) {
    World mine = world;
    mine.rank = mine.local_rank = rank;
    mine.size = mine.local_size = workers;
    std::thread([board, spec, mine, shared, group = std::move(groups[static_cast<size_t>(rank)])]() mutable {
      work(*board, spec, mine, shared, std::move(group));
    }).detach();
  }
  return board->await();
}

}  // namespace syncopate::run
