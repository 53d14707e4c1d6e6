#include <algorithm>
#include <exception>
#include <thread>

#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/parallel/server/shard_server.h"

namespace syncopate::parallel {
namespace {

/// The first error of any thread; the others' follow from it.
class FirstError {
 public:
  bool set(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_) return false;
    error_ = std::move(error);
    return true;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void serve(comm::Group& world, const ShardServerOptions& options,
           const std::function<void(const Error&)>& failed) {
  world.set_timeout(std::chrono::hours(24 * 365));  // workers come when they have loaded their data
  const auto servers = world.split(1, world.rank());
  std::vector<ServerLink> links = open_links(world, options.workers);
  const Layout layout = layout_from(comm::broadcast_text(world, "", 0));
  const auto shards = shards_of(layout, servers->size(), optim::needs_whole_tensors(options.optimizer.kind));
  ShardServer server(part_of(layout, shards[static_cast<size_t>(servers->rank())]), options, *servers);
  FirstError first;
  const auto answer = [&](int worker, ServerLink link) {
    try {
      server.answer(worker, link);
      return;
    } catch (const CommError& error) {
      const CommError named("the server lost worker {}: {}", worker, error.what());
      if (first.set(std::make_exception_ptr(named)) && failed) failed(named);
    } catch (const Error& error) {
      if (first.set(std::current_exception()) && failed) failed(error);
    } catch (const std::exception& error) {
      const InternalError named(error.what());
      if (first.set(std::make_exception_ptr(named)) && failed) failed(named);
    }
    server.fail();
  };
  std::vector<std::thread> threads;
  for (int worker = 0; worker < options.workers; ++worker) {
    threads.emplace_back(answer, worker, std::move(links[static_cast<size_t>(worker)]));
  }
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

}  // namespace syncopate::parallel
