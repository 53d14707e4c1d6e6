#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "syncopate/comm/gloo/gloo.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/comm/shm/shm.h"
#include "syncopate/comm/two_level/two_level.h"
#include "syncopate/lifeline/lifeline.h"
#include "syncopate/lifeline/server.h"

namespace syncopate::test {

/// Generous: tests share the machine.
inline constexpr std::chrono::milliseconds kPatience(60000);

/// Runs `body(rank)` in `size` threads and throws the error that came first.
inline void run_threads(int size, const std::function<void(int rank)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

/// Runs `body` on every rank of an in-process group, each in a thread of its own. A rank that throws dies, so
/// that the others do not wait for it; the first error is thrown.
inline void run_ranks(int size, const std::function<void(comm::Group&)>& body,
                      std::chrono::milliseconds timeout = kPatience) {
  std::vector<std::unique_ptr<comm::Group>> groups = comm::open_in_process(size, timeout);
  run_threads(size, [&](int rank) {
    const std::unique_ptr<comm::Group> mine = std::move(groups[static_cast<size_t>(rank)]);
    body(*mine);
  });
}

/// The same over a transport that knows the others by a lifeline: the ranks are threads of this process.
inline void run_ranks_over(
    int size, const std::function<void(comm::Group&)>& body, std::chrono::milliseconds timeout,
    const std::function<std::unique_ptr<comm::Group>(std::shared_ptr<lifeline::Lifeline>)>& open) {
  lifeline::LifelineServerOptions where;
  where.size = size;
  where.timeout = timeout;
  lifeline::LifelineServer server(where);
  run_threads(size, [&](int rank) {
    const auto line = std::make_shared<lifeline::Lifeline>(
        lifeline::LifelineOptions{{"127.0.0.1", server.port()}, rank, size, timeout, kPatience, "", {}});
    line->await_all(kPatience);
    const std::unique_ptr<comm::Group> mine = open(line);
    body(*mine);
    line->goodbye();
  });
}

/// Over Gloo with real sockets on loopback. `wrap` may put something around each rank's group.
inline void run_gloo_ranks(
    int size, const std::function<void(comm::Group&)>& body, std::chrono::milliseconds timeout = kPatience,
    const std::function<std::unique_ptr<comm::Group>(std::unique_ptr<comm::Group>)>& wrap = {}) {
  run_ranks_over(size, body, timeout, [&](std::shared_ptr<lifeline::Lifeline> line) {
    std::unique_ptr<comm::Group> mine = comm::open_gloo(std::move(line), timeout);
    return wrap ? wrap(std::move(mine)) : std::move(mine);
  });
}

/// Over shared memory.
inline void run_shm_ranks(int size, const std::function<void(comm::Group&)>& body,
                          std::chrono::milliseconds timeout = kPatience) {
  run_ranks_over(size, body, timeout, [&](std::shared_ptr<lifeline::Lifeline> line) {
    return comm::open_shm(std::move(line), timeout);
  });
}

/// In two levels; `hosts` has a letter or digit for each rank: where it is.
inline void run_two_level_ranks(const std::string& hosts, const std::function<void(comm::Group&)>& body,
                                std::chrono::milliseconds timeout = kPatience) {
  std::vector<std::string> names;
  for (const char host : hosts) names.emplace_back(1, host);
  const auto size = static_cast<int>(names.size());
  run_ranks_over(size, body, timeout, [&](const std::shared_ptr<lifeline::Lifeline>& line) {
    return comm::open_two_level(
        std::make_shared<comm::Waits>(line, timeout),
        {.prefix = "two-level", .address = "127.0.0.1", .rank = line->rank(), .hosts = names});
  });
}

}  // namespace syncopate::test
