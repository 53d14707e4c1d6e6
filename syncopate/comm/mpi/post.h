#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "syncopate/comm/mpi/link.h"
#include "syncopate/comm/operations/completion.h"

namespace syncopate::comm {

/// Carries sends and receives on, in a thread of its own, while the rank computes.
class MpiPost {
 public:
  /// One of them. Thread-safe: who waits for it looks too.
  struct Letter {
    explicit Letter(std::shared_ptr<const MpiLink> link) : calls(std::move(link)) {}
    bool look();                 ///< whether it has arrived, or failed
    std::vector<int> awaited();  ///< with whom it is exchanged, until it is

    std::mutex mutex;
    MpiCalls calls;
    bool done = false;
    std::string error{};
    Moment ended{};
  };

  MpiPost() : thread_([this] { work(); }) {}
  ~MpiPost();  ///< what has not arrived is left to MPI
  void add(std::shared_ptr<Letter> letter);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Letter>> under_way_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace syncopate::comm
