#include "syncopate/comm/operations/queued.h"

#include "syncopate/comm/operations/completion.h"

namespace syncopate::comm {
namespace {

using std::chrono::milliseconds;

class QueuedOperation : public Pending::Work {
 public:
  QueuedOperation(std::shared_ptr<Waits> waits, std::shared_ptr<JobQueue> queue, const char* operation,
                  std::shared_ptr<JobQueue::Job> job)
      : waits_(std::move(waits)), queue_(std::move(queue)), operation_(operation), job_(std::move(job)) {}

  void wait() override {
    waits_->awaited([&] {
      // Most of the time it is done in this thread, and the waiting is in there.
      if (!queue_->wait(*job_, milliseconds(1)))
        waits_->wait(operation_, [&](milliseconds slice) { return queue_->wait(*job_, slice); });
    });
    note_end(job_->ended);
  }

 private:
  std::shared_ptr<Waits> waits_;
  std::shared_ptr<JobQueue> queue_;
  const char* operation_;
  std::shared_ptr<JobQueue::Job> job_;
};

}  // namespace

Pending queued(std::shared_ptr<Waits> waits, std::shared_ptr<JobQueue> queue, const char* operation,
               std::shared_ptr<JobQueue::Job> job) {
  return Pending(
      std::make_unique<QueuedOperation>(std::move(waits), std::move(queue), operation, std::move(job)));
}

}  // namespace syncopate::comm
