#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace syncopate::comm {

/// One rank's contribution to an operation.
struct Contribution {
  const char* operation = "";
  int detail = 0;  ///< root or reduction: must be the same on all ranks
  at::Tensor tensor;
  std::vector<at::Tensor> list;
};

/// Where the ranks of an in-process group meet. The n-th call of every rank belongs to the n-th slot; whoever
/// comes last does the action for all. Point to point, a send is done when it is received, as with Gloo.
class Hub {
 public:
  using Action = std::function<void(std::vector<Contribution>&)>;

  struct Slot {
    std::string name;
    std::vector<Contribution> contributions;
    std::vector<bool> here;
    size_t arrived = 0;
    bool done = false;
    std::chrono::steady_clock::time_point ended{};  ///< once it is done
    int awaited = -1;                               ///< point to point: the rank it needs, or kAnyRank
    bool point_to_point = false;
  };

  explicit Hub(int size);
  int size() const { return size_; }
  std::shared_ptr<Slot> meet(int rank, Contribution contribution, const Action& action);
  std::shared_ptr<Slot> send(int rank, int to, int tag, at::Tensor tensor);
  std::shared_ptr<Slot> receive(int rank, int from, int tag, at::Tensor into);
  std::pair<std::shared_ptr<Hub>, int> split(int rank, std::chrono::milliseconds timeout, int color, int key);
  void wait(int rank, std::chrono::milliseconds timeout, Slot& slot);  ///< throws CommError
  void leave(int rank);                                                ///< the rank will never call again

 private:
  struct Letter {
    int from, to, tag;
    at::Tensor tensor;
    std::shared_ptr<Slot> slot;
  };
  void check_alive() const;
  std::string missing(int rank, const Slot& slot) const;
  [[noreturn]] void fail(const std::string& sentence);
  static std::shared_ptr<Slot> letter_slot(const char* name, int awaited);
  void deliver(const Letter& sent, const Letter& expected);
  static void end(Slot& slot);

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int64_t> calls_;                      ///< how many slots each rank has come to
  std::map<int64_t, std::shared_ptr<Slot>> slots_;  ///< those that somebody has yet to come to
  std::list<Letter> sent_, expected_;
  std::vector<bool> gone_;
  std::map<int64_t, std::map<int, std::pair<std::shared_ptr<Hub>, int>>>
      children_;  ///< by split slot, then rank
  std::string failure_;
};

}  // namespace syncopate::comm
