#include "syncopate/lifeline/lifeline_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/lifeline/proof.h"
#include "syncopate/lifeline/protocol.h"

namespace syncopate::lifeline {

Lifeline::Loop::Loop(const LifelineOptions& options)
    : options_(options),
      beat_(beat_interval(options.timeout)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      channel_(connect_to(options.server, Clock::now() + options.patience)),
      local_(local_address(channel_.socket())) {
  greet();
  thread_ = std::thread([this] { run(); });
}

Lifeline::Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
}

std::string Lifeline::Loop::hear(Deadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{channel_.fd(), POLLIN, 0};
    if (left.count() > 0) ::poll(&wait, 1, static_cast<int>(left.count()));
    const bool alive = channel_.fill();
    if (auto frame = channel_.next()) return std::move(*frame);
    if (alive && left.count() > 0) continue;
    throw CommError("{} does not answer as a rendezvous of ours; is the port used by another program?",
                    options_.server.text());
  }
}

void Lifeline::Loop::greet() {
  const Deadline deadline = Clock::now() + std::max(options_.patience, std::chrono::milliseconds(1000));
  const auto expect = [&](const Unpacker& fields, FrameKind kind) {
    if (fields.kind() != kind) throw CommError("{} speaks another protocol", options_.server.text());
  };
  Introduction told{.of_worker = random_key(), .of_server = "", .rank = options_.rank, .size = options_.size};
  channel_.send(
      Packer(FrameKind::kHello).number(kMagic).text(told.of_worker).number(told.rank).number(told.size));
  const std::string challenge = hear(deadline);
  Unpacker asked(challenge);
  expect(asked, FrameKind::kChallenge);
  told.of_server = asked.text();
  channel_.send(pack_proof(told.worker_proof(options_.key), options_.claims));
  const std::string answer = hear(deadline);
  Unpacker fields(answer);
  if (fields.kind() == FrameKind::kRefused) {
    const bool for_its_key = fields.number() != 0;
    throw RefusedError(fields.text(), for_its_key);
  }
  expect(fields, FrameKind::kWelcome);
  if (!proves(fields.text(), told.server_proof(options_.key))) {
    throw RefusedError(fmt::format("{} let rank {} in without knowing the token; is it another program?",
                                   options_.server.text(), options_.rank),
                       true);
  }
  host_rank_ = static_cast<int>(fields.number());
}

void Lifeline::Loop::wake() {
  const uint64_t one = 1;
  (void)!::write(wake_.fd(), &one, sizeof one);
}

void Lifeline::Loop::send(const Packer& frame) {
  const std::lock_guard lock(mutex_);
  channel_.send(frame);
}

std::optional<Lifeline::Loop::Reply> Lifeline::Loop::ask(const std::function<Packer(int64_t id)>& build,
                                                         std::chrono::milliseconds timeout,
                                                         bool despite_failure) {
  std::unique_lock lock(mutex_);
  if (!channel_.open() || (failure_ && !despite_failure)) return std::nullopt;
  const int64_t id = next_id_++;
  replies_[id];
  channel_.send(build(id));
  changed_.wait_for(lock, timeout, [&] {
    return replies_[id].has_value() || !channel_.open() || (failure_ && !despite_failure);
  });
  return std::move(replies_.extract(id).mapped());
}

std::optional<Failure> Lifeline::Loop::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<Failure> Lifeline::Loop::await_failure(std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return failure_.has_value(); });
  return failure_;
}

void Lifeline::Loop::goodbye() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  channel_.send(Packer(FrameKind::kGoodbye));
}

void Lifeline::Loop::watch(LastResort last_resort, std::chrono::milliseconds patience) {
  {
    const std::lock_guard lock(mutex_);
    last_resort_ = std::move(last_resort);
    patience_ = patience;
  }
  wake();
}

int Lifeline::Loop::listen(std::function<void()> listener) {
  const std::lock_guard lock(mutex_);
  if (failure_) listener();
  listeners_[next_listener_] = std::move(listener);
  return next_listener_++;
}

void Lifeline::Loop::unlisten(int id) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(id);
}

std::optional<int64_t> Lifeline::Loop::begin(int64_t step) {
  std::unique_lock lock(mutex_);
  if (asked_ && !meeting_) {
    ++waiting;
    changed_.wait(lock, [&] { return meeting_ || failure_ || !channel_.open(); });
    --waiting;
  }
  if (failure_ || (asked_ && !meeting_)) return std::nullopt;
  if (meeting_ && step >= meeting_->step) {
    const int64_t wishes = meeting_->wishes;
    meeting_.reset();
    asked_ = false;
    channel_.send(Packer(FrameKind::kMet));
    return wishes;
  }
  begun_ = step + 1;
  return 0;
}

void Lifeline::Loop::run() {
  Clock::time_point heard = Clock::now(), last = heard, next_beat = heard;
  bool told_of_silence = false;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const short events = channel_.unsent() ? POLLIN | POLLOUT : POLLIN;
    pollfd watched[] = {{wake_.fd(), POLLIN, 0},
                        {channel_.fd(), events, 0}};  // a closed channel's -1 is ignored
    lock.unlock();
    ::poll(watched, 2, static_cast<int>(beat_.count()));
    lock.lock();
    const Clock::time_point now = Clock::now();
    if (now - last > standstill(beat_)) heard += now - last;  // we stood still ourselves
    last = now;
    uint64_t ignored = 0;
    (void)!::read(wake_.fd(), &ignored, sizeof ignored);
    if (channel_.open()) {
      channel_.flush();
      const bool alive = channel_.fill();
      try {
        while (const auto frame = channel_.next()) {
          heard = now;
          Unpacker fields(*frame);
          if (fields.kind() == FrameKind::kFailure) {
            learn(unpack_failure(fields));
          } else {
            handle(*frame);
          }
        }
      } catch (const CommError&) {
        lost();
      }
      if (!alive) {
        lost();
      } else if (now - heard > options_.timeout && !over_) {
        const double silence = std::chrono::duration<double>(now - heard).count();
        learn(hung(host_rank_, host_status_, silence));
      } else if (now >= next_beat) {
        next_beat = now + beat_;
        const bool silent = now - heard > kSilence && host_rank_ >= 0 && !over_ && !failure_;
        if (silent && !told_of_silence && options_.on_silence)
          options_.on_silence(fell_silent(host_rank_, host_status_, options_.timeout));
        told_of_silence = silent;
        channel_.send(Packer(FrameKind::kBeat).number(waiting > 0 ? 1 : 0));
      }
    }
    keep_watch(lock);
  }
}

void Lifeline::Loop::handle(const std::string& frame) {
  Unpacker fields(frame);
  if (fields.kind() == FrameKind::kReply) {
    const auto found = replies_.find(fields.number());
    if (found == replies_.end()) return;  // too late: nobody waits any more
    const int64_t number = fields.number();
    found->second = Reply{number, fields.text()};
    changed_.notify_all();
  } else if (fields.kind() == FrameKind::kStatus) {
    fields.number();
    host_status_.step = fields.number();
    host_status_.phase = fields.text();
  } else if (fields.kind() == FrameKind::kWhere) {
    asked_ = true;
    channel_.send(Packer(FrameKind::kHere).number(begun_));
  } else if (fields.kind() == FrameKind::kMeet) {
    const int64_t step = fields.number();
    meeting_ = Meeting{.step = step, .wishes = fields.number()};
    changed_.notify_all();
  } else if (fields.kind() == FrameKind::kClosing) {
    over_ = true;
  }
}

void Lifeline::Loop::lost() {
  channel_.close();
  changed_.notify_all();
  if (!over_) learn(died(host_rank_, host_status_));
}

void Lifeline::Loop::learn(const Failure& failure) {
  if (failure_) return;
  failure_ = failure;
  learned_ = Clock::now();
  changed_.notify_all();
  for (const auto& [id, listener] : listeners_) listener();
}

void Lifeline::Loop::keep_watch(std::unique_lock<std::mutex>& lock) {
  if (!failure_ || !last_resort_ || over_ || Clock::now() - learned_ < patience_) return;
  const LastResort act = std::move(last_resort_);
  last_resort_ = nullptr;
  const Failure failure = *failure_;
  lock.unlock();
  act(failure);
  lock.lock();
}

}  // namespace syncopate::lifeline
