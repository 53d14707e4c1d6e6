#pragma once

#include <memory>

#include "syncopate/comm/operations/job_queue.h"
#include "syncopate/comm/operations/waits.h"
#include "syncopate/comm/pending.h"

namespace syncopate::comm {

/// An operation that a group's queue carries out, most of the time in the thread that waits for it.
Pending queued(std::shared_ptr<Waits> waits, std::shared_ptr<JobQueue> queue, const char* operation,
               std::shared_ptr<JobQueue::Job> job);

}  // namespace syncopate::comm
