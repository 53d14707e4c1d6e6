#include "syncopate/parallel/trace.h"

#include <chrono>
#include <utility>

namespace syncopate::parallel {

Trace::Trace(Options options) : options_(std::move(options)) {}

double Trace::now() const {
  if (options_.clock) return options_.clock();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Trace::begin_step(int64_t step) {
  const int64_t number = begun_++;
  if (number < options_.skip || number >= options_.skip + options_.steps) return;
  step_ = step;
  step_begin_ = now();
  on_ = true;
}

void Trace::end_step() {
  if (!on()) return;
  add(Event{.name = "step", .begin = step_begin_, .end = now()});
  on_ = false;
}

void Trace::add(Event event) {
  const std::lock_guard lock(mutex_);
  event.step = step_;
  events_.push_back(std::move(event));
}

void Trace::add(Message message) {
  const std::lock_guard lock(mutex_);
  message.step = step_;
  messages_.push_back(message);
}

}  // namespace syncopate::parallel
