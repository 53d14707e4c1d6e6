#include "syncopate/comm/gloo_work.h"

#include <algorithm>
#include <atomic>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/completion.h"

namespace syncopate::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSlice(250);
/// A dead peer's connections break together: the lifeline names it within a moment of Gloo's complaint.
constexpr milliseconds kGrace(1000);

class GlooOperation : public Pending::Work {
 public:
  GlooOperation(std::shared_ptr<GlooWaits> waits, const char* operation, c10::intrusive_ptr<c10d::Work> work,
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
    if (collective_) {
      waits_->wait(operation_, [&](milliseconds slice) { return poll(slice); });
    } else {
      waits_->wait_whole(
          operation_, [&](milliseconds timeout) { return work_->wait(timeout); },
          [work = work_] { work->abort(); });
    }
    if (const Clock::rep ended = *ended_) note_end(Clock::time_point(Clock::duration(ended)));
    if (after_) after_();
  }

 private:
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

  std::shared_ptr<GlooWaits> waits_;
  const char* operation_;
  c10::intrusive_ptr<c10d::Work> work_;
  bool collective_;
  std::function<void()> after_;
  std::shared_ptr<std::atomic<Clock::rep>> ended_ =
      std::make_shared<std::atomic<Clock::rep>>(0);  ///< 0: not yet
};

}  // namespace

bool GlooWaits::dead() const {
  const std::lock_guard lock(mutex_);
  return !failure_.empty() || lifeline_->failure().has_value();
}

void GlooWaits::check() const {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw CommError("{}", failure_);
  }
  lifeline_->check();
}

void GlooWaits::wait(const char* operation, const std::function<bool(milliseconds slice)>& poll) {
  const lifeline::Lifeline::Waiting waiting(*lifeline_);
  milliseconds waited(0);
  while (true) {
    check();
    const Clock::time_point start = Clock::now();
    try {
      if (poll(std::clamp(timeout_ - waited, milliseconds(1), kSlice))) return;
    } catch (const CommError& error) {
      give_up(error.what());
    } catch (const std::exception& error) {
      broken(operation, first_line(error.what()));
    }
    // A process that was stopped for a while has not waited for others all that time.
    waited += std::min(std::chrono::ceil<milliseconds>(Clock::now() - start), 4 * kSlice);
    if (waited >= timeout_) out_of_time(operation);
  }
}

void GlooWaits::wait_whole(const char* operation, const std::function<bool(milliseconds)>& block,
                           const std::function<void()>& abort) {
  check();
  const lifeline::Lifeline::Waiting waiting(*lifeline_);
  const Clock::time_point start = Clock::now();
  const int id = lifeline_->listen(abort);
  bool done = false;
  std::string complaint;
  try {
    done = block(timeout_);
  } catch (const std::exception& error) {
    complaint = first_line(error.what());
  }
  lifeline_->unlisten(id);
  if (done) return;
  if (!complaint.empty() && Clock::now() - start >= timeout_) out_of_time(operation);
  broken(operation, complaint);
}

void GlooWaits::out_of_time(const char* operation) {
  const double seconds = std::chrono::duration<double>(timeout_).count();
  give_up(fmt::format("{} (rank {} waited {:.3g} s in {})", lifeline_->blame(operation, seconds).for_others(),
                      lifeline_->rank(), seconds, operation));
}

void GlooWaits::broken(const char* operation, const std::string& reason) {
  if (const auto failure = lifeline_->await_failure(kGrace)) give_up(failure->for_others());
  give_up(fmt::format("rank {} lost its connection to another rank in {}: {}", lifeline_->rank(), operation,
                      reason));
}

void GlooWaits::give_up(const std::string& sentence) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = sentence;
  }
  throw CommError("{}", sentence);
}

Pending pending_over(std::shared_ptr<GlooWaits> waits, const char* operation,
                     c10::intrusive_ptr<c10d::Work> work, bool collective, std::function<void()> after) {
  return Pending(std::make_unique<GlooOperation>(std::move(waits), operation, std::move(work), collective,
                                                 std::move(after)));
}

}  // namespace syncopate::comm
