#pragma once

#include <memory>
#include <utility>

namespace syncopate::comm {

/// An operation in flight. Keeps its tensors alive. Move-only; an operation that is never waited for still
/// runs.
class Pending {
 public:
  class Work {
   public:
    virtual ~Work() = default;
    virtual void wait() = 0;  ///< throws CommError
  };

  Pending() = default;  ///< already done
  explicit Pending(std::unique_ptr<Work> work) : work_(std::move(work)) {}

  /// Blocks until the operation is done; throws CommError when it failed or ran past the group's deadline.
  void wait() {
    if (const std::unique_ptr<Work> work = std::move(work_)) work->wait();
  }

 private:
  std::unique_ptr<Work> work_;
};

}  // namespace syncopate::comm
