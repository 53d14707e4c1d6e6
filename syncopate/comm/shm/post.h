#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "syncopate/comm/shm/region.h"

namespace syncopate::comm {

/// Letters from rank to rank through rings of shared memory. Those from one rank with one tag keep their
/// order; one that nobody expects yet waits in its ring or, where a later one is expected, aside. A letter is
/// sent once it is in the ring. Any thread may move letters on, one at a time.
class ShmPost {
 public:
  struct Letter {
    int peer = 0;  ///< or kAnyRank
    int tag = 0;
    at::Tensor tensor{};
    int64_t moved = 0;  ///< bytes, its head included
    bool done = false;
    std::string error{};  ///< why it is done without having moved
    std::chrono::steady_clock::time_point ended{};
  };

  explicit ShmPost(std::shared_ptr<ShmRegion> region);
  std::shared_ptr<Letter> send(at::Tensor tensor, int to, int tag);
  std::shared_ptr<Letter> receive(at::Tensor into, int from, int tag);
  bool move();  ///< what can be moved; whether anything was
  bool done(const Letter& letter) const;
  /// Whether another rank has done something since the last move().
  bool stirred() const;

 private:
  /// Before a letter's bytes.
  struct Head {
    int64_t bytes = 0;
    int64_t tag = 0;
  };
  /// A letter that arrived before it was expected.
  struct Early {
    int from = 0;
    int64_t tag = 0;
    std::vector<std::byte> bytes{};
    bool complete = false;
    std::shared_ptr<Letter> taker{};
  };
  /// What is coming from one rank.
  struct Incoming {
    Head head{};
    int64_t taken = 0;  ///< bytes of the letter that were read, its head included
    std::byte* into = nullptr;
    std::shared_ptr<Letter> letter{};
    std::list<Early>::iterator early{};
  };

  bool push(int to);
  bool pull(int from);
  bool expects(int from) const;
  void open(int from);
  void close(int from);
  bool fits(Letter& letter, int from, int64_t bytes);
  void end(Letter& letter);

  std::shared_ptr<ShmRegion> region_;
  mutable std::mutex mutex_;
  std::vector<std::list<std::shared_ptr<Letter>>> outgoing_;  ///< by rank
  std::vector<bool> backed_;                                  ///< rings that have memory
  std::list<std::shared_ptr<Letter>> expected_;
  std::list<Early> early_;
  std::vector<Incoming> incoming_;  ///< by rank
};

}  // namespace syncopate::comm
