#include "syncopate/lifeline/lifeline.h"

#include "syncopate/base/error.h"
#include "syncopate/lifeline/lifeline_loop.h"
#include "syncopate/lifeline/protocol.h"

namespace syncopate::lifeline {

Lifeline::Lifeline(const LifelineOptions& options) : loop_(std::make_unique<Loop>(options)) {}
Lifeline::~Lifeline() = default;

int Lifeline::rank() const { return loop_->options().rank; }
int Lifeline::size() const { return loop_->options().size; }
Address Lifeline::local() const { return loop_->local(); }

void Lifeline::status(int64_t step, std::string_view phase) {
  loop_->send(pack(rank(), Status{step, std::string(phase)}));
}

std::optional<Failure> Lifeline::failure() const { return loop_->failure(); }

std::optional<Failure> Lifeline::await_failure(std::chrono::milliseconds patience) const {
  return loop_->await_failure(patience);
}

void Lifeline::check() const {
  if (const auto known = failure()) throw CommError("{}", known->for_others());
}

void Lifeline::fail(std::string_view sentence, int exit_code) {
  const auto build = [&](int64_t id) {
    Packer frame(FrameKind::kFail);
    return frame.number(id).number(exit_code).text(sentence);
  };
  loop_->ask(build, std::chrono::seconds(1), true);
}

Failure Lifeline::blame(std::string_view operation, double seconds) {
  const auto build = [&](int64_t id) {
    Packer frame(FrameKind::kBlame);
    return frame.number(id).text(operation).number(static_cast<int64_t>(seconds * 1000));
  };
  loop_->ask(build, std::chrono::seconds(1));
  if (const auto known = await_failure(std::chrono::milliseconds(100))) return *known;
  // The server does not answer either.
  Failure unknown;
  unknown.rank = rank();
  unknown.cause = Cause::kHung;
  unknown.sentence = fmt::format("rank {} waited {:.3g} s in {} and the rendezvous does not answer", rank(),
                                 seconds, operation);
  return unknown;
}

void Lifeline::goodbye() { loop_->goodbye(); }

void Lifeline::watch(LastResort last_resort, std::chrono::milliseconds patience) {
  loop_->watch(std::move(last_resort), patience);
}

int Lifeline::listen(std::function<void()> listener) { return loop_->listen(std::move(listener)); }
void Lifeline::unlisten(int id) { loop_->unlisten(id); }

Lifeline::Waiting::Waiting(Lifeline& line) : line_(line) { ++line_.loop_->waiting; }
Lifeline::Waiting::~Waiting() { --line_.loop_->waiting; }

void Lifeline::wish(int64_t wishes) { loop_->send(Packer(FrameKind::kWish).number(wishes)); }

int64_t Lifeline::begin(int64_t step) {
  const std::optional<int64_t> wishes = loop_->begin(step);
  if (wishes) return *wishes;
  check();
  throw CommError("rank {} lost the rendezvous {} before step {}", rank(), loop_->options().server.text(),
                  step);
}

int64_t Lifeline::request(std::string_view what, const Build& build, std::chrono::milliseconds timeout,
                          std::string* value) {
  auto reply = loop_->ask(build, timeout);
  if (!reply) {
    check();
    throw CommError("rank {}: the rendezvous {} gave no answer to {} within {:.3g} s", rank(),
                    loop_->options().server.text(), what, std::chrono::duration<double>(timeout).count());
  }
  if (value != nullptr) *value = std::move(reply->value);
  return reply->number;
}

void Lifeline::set(const std::string& key, const std::string& value) {
  const auto build = [&](int64_t id) { return Packer(FrameKind::kSet).number(id).text(key).text(value); };
  request("set", build, loop_->options().timeout);
}

std::string Lifeline::get(const std::string& key, std::chrono::milliseconds timeout) {
  std::string value;
  const auto build = [&](int64_t id) { return Packer(FrameKind::kGet).number(id).text(key); };
  request(fmt::format("get \"{}\"", key), build, timeout, &value);
  return value;
}

int64_t Lifeline::add(const std::string& key, int64_t number) {
  const auto build = [&](int64_t id) { return Packer(FrameKind::kAdd).number(id).text(key).number(number); };
  return request("add", build, loop_->options().timeout);
}

bool Lifeline::exist(const std::vector<std::string>& keys) {
  const auto build = [&](int64_t id) {
    Packer frame(FrameKind::kCheck);
    frame.number(id).number(static_cast<int64_t>(keys.size()));
    for (const std::string& key : keys) frame.text(key);
    return frame;
  };
  return request("check", build, loop_->options().timeout) != 0;
}

bool Lifeline::erase(const std::string& key) {
  const auto build = [&](int64_t id) { return Packer(FrameKind::kErase).number(id).text(key); };
  return request("erase", build, loop_->options().timeout) != 0;
}

int64_t Lifeline::count() {
  return request(
      "count", [&](int64_t id) { return Packer(FrameKind::kCount).number(id); }, loop_->options().timeout);
}

void Lifeline::await_all(std::chrono::milliseconds timeout) {
  const auto build = [&](int64_t id) { return Packer(FrameKind::kGet).number(id).text(kAllJoined); };
  if (loop_->ask(build, timeout)) return;
  check();
  const Failure failure = blame("the rendezvous", std::chrono::duration<double>(timeout).count());
  if (failure.exit_code == static_cast<int>(ExitCode::kConfig)) throw ConfigError("{}", failure.for_others());
  throw CommError("{}", failure.for_others());
}

}  // namespace syncopate::lifeline
