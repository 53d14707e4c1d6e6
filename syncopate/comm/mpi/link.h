#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace syncopate::comm {

/// MPI in this process. It can be started and ended only once; a thread of its own does both, and what
/// MPI knows as blocking calls alone, so that others can wait for it with a deadline. That thread is left
/// behind where such a call does not end.
class MpiProcess {
 public:
  static MpiProcess& instance();  ///< lives until the process ends

  std::shared_future<void> start();  ///< the first call starts MPI
  std::shared_future<void> end();    ///< waits for the other processes
  bool started() const { return starting_.valid(); }
  // Once it has started:
  int rank() const { return rank_; }
  int size() const { return size_; }
  int highest_tag() const { return highest_tag_; }
  std::shared_future<void> run(std::function<void()> call);

 private:
  MpiProcess();
  struct Thread;
  std::shared_ptr<Thread> thread_;
  std::shared_future<void> starting_, ending_;
  int rank_ = 0, size_ = 0, highest_tag_ = 0;
};

/// A communicator: some of MPI's processes, numbered anew. Never freed: that would be collective, and
/// a group's end is not.
class MpiLink {
 public:
  explicit MpiLink(std::vector<int> processes) : processes_(std::move(processes)) {}
  /// Collective among `processes`; blocks, so it is done in MPI's thread.
  void connect();
  /// Which of MPI's processes a rank is.
  int process(int rank) const { return processes_[static_cast<size_t>(rank)]; }

 private:
  friend class MpiCalls;
  std::vector<int> processes_;
  std::shared_ptr<void> communicator_;
};

/// Transfers that are under way together. What is not done when it is destroyed is left to MPI, with the
/// tensors, until the process ends: it may still write to them. Not thread-safe.
class MpiCalls {
 public:
  explicit MpiCalls(std::shared_ptr<const MpiLink> link);
  ~MpiCalls();
  MpiCalls(const MpiCalls&) = delete;
  MpiCalls& operator=(const MpiCalls&) = delete;

  void keep(at::Tensor tensor) { kept_.push_back(std::move(tensor)); }  ///< until all is done
  void send(const void* data, size_t bytes, int to, int tag);
  void receive(void* into, size_t bytes, int from, int tag);  ///< `from` may be kAnyRank
  void broadcast(void* data, size_t bytes, int root);
  void barrier();
  /// Never blocks; moves MPI on. Throws CommError when MPI complains or something else came than was
  /// expected.
  bool done();
  /// The ranks from or to which something is still on its way.
  std::vector<int> awaited() const;

 private:
  struct Requests;

  std::shared_ptr<const MpiLink> link_;
  std::unique_ptr<Requests> requests_;
  std::vector<at::Tensor> kept_;
};

}  // namespace syncopate::comm
