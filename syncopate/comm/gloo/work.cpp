#include "syncopate/comm/gloo/work.h"

#include <atomic>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "syncopate/comm/operations/completion.h"

namespace syncopate::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class GlooOperation : public Pending::Work {
 public:
  GlooOperation(std::shared_ptr<Waits> waits, const char* operation, c10::intrusive_ptr<c10d::Work> work,
                bool collective, std::function<void()> after)
      : waits_(std::move(waits)),
        operation_(operation),
        work_(std::move(work)),
        collective_(collective),
        after_(std::move(after)) {
    if (!collective_) return;  // has no future
    // Gloo completes it before a wait returns, in a thread of its own that may outlive this.
    work_->getFuture()->addCallback(
        [ended = ended_](c10::ivalue::Future&) { *ended = Clock::now().time_since_epoch().count(); });
  }

  void wait() override {
    waits_->awaited([&] { complete(); });
    if (const Clock::rep ended = *ended_) note_end(Clock::time_point(Clock::duration(ended)));
    if (after_) after_();
  }

 private:
  void complete() {
    if (collective_) {
      waits_->wait(operation_, [&](milliseconds slice) { return poll(slice); });
    } else {
      waits_->wait_whole(
          operation_,
          [&](milliseconds timeout) {
            constexpr milliseconds kForever(0);  // c10d's
            return work_->wait(timeout == kNoDeadline ? kForever : timeout);
          },
          [work = work_] { work->abort(); });
    }
  }

  bool poll(milliseconds slice) {
    const bool ready = work_->isCompleted();
    try {
      work_->wait(slice);
      return true;
    } catch (const std::exception&) {
      if (ready) throw;  // the operation's own error; otherwise just the end of the slice
      return false;
    }
  }

  std::shared_ptr<Waits> waits_;
  const char* operation_;
  c10::intrusive_ptr<c10d::Work> work_;
  bool collective_;
  std::function<void()> after_;
  std::shared_ptr<std::atomic<Clock::rep>> ended_ =
      std::make_shared<std::atomic<Clock::rep>>(0);  ///< 0: not yet
};

}  // namespace

Pending pending_over(std::shared_ptr<Waits> waits, const char* operation, c10::intrusive_ptr<c10d::Work> work,
                     bool collective, std::function<void()> after) {
  return Pending(std::make_unique<GlooOperation>(std::move(waits), operation, std::move(work), collective,
                                                 std::move(after)));
}

}  // namespace syncopate::comm
