#include "syncopate/comm/operations/waits.h"

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSlice(250);

}  // namespace

bool Waits::dead() const {
  const std::lock_guard lock(mutex_);
  return !end_.sentence.empty() || lifeline_->failure().has_value();
}

void Waits::check() const {
  {
    const std::lock_guard lock(mutex_);
    end_.raise();
  }
  lifeline_->check();
}

void Waits::wait(const char* operation, const Poll& poll) { Wait(*this, operation).until(poll); }

void Wait::until(const Waits::Poll& poll) {
  while (true) {
    waits_.check();
    const Clock::time_point start = Clock::now();
    bool done = false;
    try {
      done = poll(std::clamp(waits_.timeout() - waited(), milliseconds(1), kSlice));
    } catch (const CommError& error) {
      waits_.die_of(error);
      throw;
    } catch (const std::exception& error) {
      waits_.broken(operation_, first_line(error.what()));
    }
    // A process that was stopped for a while has not waited for others all that time.
    waited_ += std::min<Clock::duration>(Clock::now() - start, 4 * kSlice);
    if (done) return;
    if (waited() >= waits_.timeout()) waits_.out_of_time(operation_);
  }
}

void Waits::wait_whole(const char* operation, const std::function<bool(milliseconds)>& block,
                       const std::function<void()>& abort) {
  check();
  std::optional<lifeline::Lifeline::Waiting> waiting;
  if (timeout_ != kNoDeadline) waiting.emplace(*lifeline_);
  const Clock::time_point start = Clock::now();
  const int id = lifeline_->listen(abort);
  const auto mine = [&] {
    const std::lock_guard lock(mutex_);
    return aborts_.insert(aborts_.end(), abort);
  }();
  if (dead()) abort();  // since it was looked at
  bool done = false;
  std::string complaint;
  try {
    done = block(timeout_);
  } catch (const std::exception& error) {
    complaint = first_line(error.what());
  }
  lifeline_->unlisten(id);
  End end;
  {
    const std::lock_guard lock(mutex_);
    aborts_.erase(mine);
    end = end_;
  }
  if (done) return;
  end.raise();
  // kNoDeadline has no number of nanoseconds.
  const bool late = timeout_ != kNoDeadline && Clock::now() - start >= timeout_;
  if (late && !complaint.empty()) out_of_time(operation);
  broken(operation, complaint);
}

void Waits::out_of_time(const char* operation) {
  const double seconds = std::chrono::duration<double>(timeout_).count();
  give_up(fmt::format("{} (rank {} waited {:.3g} s in {})", lifeline_->blame(operation, seconds).for_others(),
                      lifeline_->rank(), seconds, operation));
}

void Waits::broken(const char* operation, const std::string& reason) {
  if (const auto failure = lifeline_->await_failure(kGrace)) give_up(failure->for_others());
  const std::string what = fmt::format("lost its connection to another rank in {}: {}", operation, reason);
  const std::string sentence = fmt::format("rank {} {}", lifeline_->rank(), what);
  if (timeout_ == kNoDeadline) desert(sentence);
  lifeline_->fail("it " + what, static_cast<int>(ExitCode::kComm));  // others may wait for others
  give_up(sentence);
}

void Waits::deserted(const char* operation, int by, milliseconds grace) {
  if (const auto failure = lifeline_->await_failure(grace)) give_up(failure->for_others());
  desert(fmt::format("rank {} left while rank {} waited for it in {}", by, lifeline_->rank(), operation));
}

void Waits::desert(const std::string& sentence) {
  die_by({.sentence = sentence, .deserted = true});
  throw Deserted("{}", sentence);
}

void Waits::awaited(const std::function<void()>& wait) {
  try {
    wait();
  } catch (const Deserted& error) {
    if (timeout_ != kNoDeadline)  // else that is for who keeps the deadline
      lifeline_->fail(error.what(), static_cast<int>(ExitCode::kComm));
    throw;
  }
}

void Waits::End::raise() const {
  if (sentence.empty()) return;
  if (deserted) throw Deserted("{}", sentence);
  throw CommError("{}", sentence);
}

void Waits::die(const std::string& sentence) { die_by({.sentence = sentence}); }

void Waits::die_of(const std::exception& error) {
  die_by({.sentence = error.what(), .deserted = dynamic_cast<const Deserted*>(&error) != nullptr});
}

void Waits::die_by(End end) {
  std::list<std::function<void()>> aborts;
  {
    const std::lock_guard lock(mutex_);
    if (end_.sentence.empty()) end_ = std::move(end);
    aborts = aborts_;
  }
  for (const auto& abort : aborts) abort();
}

void Waits::dying(const std::function<void()>& body) {
  check();
  try {
    body();
  } catch (const std::exception& error) {
    die_of(error);
    throw;
  }
}

void Waits::give_up(const std::string& sentence) {
  die(sentence);
  throw CommError("{}", sentence);
}

}  // namespace syncopate::comm
