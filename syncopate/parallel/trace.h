#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace syncopate::parallel {

/// What this rank does in a few steps, and when: for a picture of them (`train --trace`). Who computes or
/// sends finds it in its Replica, null where nobody asked; outside of the steps that are traced nothing is
/// noted. Any thread may note something.
class Trace {
 public:
  enum class Lane { kCompute, kCoding, kForward, kBackward, kExchange };
  static constexpr int kLanes = 5;

  struct Event {
    Lane lane = Lane::kCompute;
    std::string name{};
    double begin = 0, end = 0;  ///< seconds on this rank's clock
    int64_t step = 0;           ///< from 1
    int64_t micro = -1;         ///< which micro-batch; -1: not of one
    double bytes = 0;           ///< that travel; 0: none
  };
  /// One end of a transfer between two stages, in Lane::kForward or Lane::kBackward. The sender knows when it
  /// handed a message over, the receiver from when to when it was blocked for it: together they know the
  /// flight.
  struct Message {
    Lane lane = Lane::kForward;
    bool sent = false;
    int peer = 0;  ///< the other end's rank among the stages
    int64_t step = 0, micro = 0;
    double begin = 0, end = 0;
    double bytes = 0;
  };

  struct Options {
    int64_t skip = 2;                 ///< steps of this process before the first that is traced
    int64_t steps = 3;                ///< how many are traced
    std::function<double()> clock{};  ///< seconds; empty: std::chrono::steady_clock
  };
  Trace() : Trace(Options{}) {}
  explicit Trace(Options options);

  void begin_step(int64_t step);  ///< its number, from 1
  void end_step();
  /// In a step that is traced.
  bool on() const { return on_.load(std::memory_order_relaxed); }
  double now() const;
  int64_t step() const { return step_; }

  void add(Event event);      ///< the step is filled in
  void add(Message message);  ///< likewise

  const std::vector<Event>& events() const { return events_; }
  const std::vector<Message>& messages() const { return messages_; }

  /// Notes what happens from here to its end of life, or to `end`.
  class Span {
   public:
    Span(Trace* trace, Lane lane, const char* name, int64_t micro = -1)
        : trace_(trace != nullptr && trace->on() ? trace : nullptr), lane_(lane), name_(name), micro_(micro) {
      if (trace_ != nullptr) begin_ = trace_->now();
    }
    ~Span() { end(); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    void end() {
      if (trace_ != nullptr)
        trace_->add(
            Event{.lane = lane_, .name = name_, .begin = begin_, .end = trace_->now(), .micro = micro_});
      trace_ = nullptr;
    }

   private:
    Trace* trace_;
    Lane lane_;
    const char* name_;
    int64_t micro_;
    double begin_ = 0;
  };

 private:
  Options options_;
  std::atomic<bool> on_ = false;
  int64_t begun_ = 0, step_ = 0;
  double step_begin_ = 0;
  std::mutex mutex_;  ///< of what follows
  std::vector<Event> events_;
  std::vector<Message> messages_;
};

}  // namespace syncopate::parallel
