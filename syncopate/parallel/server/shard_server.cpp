#include "syncopate/parallel/server/shard_server.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "syncopate/optim/clip.h"
#include "syncopate/parallel/server/gradient_runs.h"

namespace syncopate::parallel {
namespace {

at::Tensor new_array(const Layout& shard) { return at::zeros({shard.size}, at::dtype(shard.type)); }

void receive_gradient(ServerLink& link, const Request& request, const at::Tensor& grads) {
  if (request.runs < 0) return link.receive(grads).wait();
  const at::Tensor runs = at::empty({request.runs, 2}, at::kLong);
  const at::Tensor packed = at::empty({request.elements}, grads.options());
  if (request.runs > 0) {
    link.receive(runs).wait();
    link.receive(packed).wait();
  }
  unpack(packed, runs_from(runs), grads);
}

}  // namespace

ShardServer::ShardServer(const Layout& shard, const ShardServerOptions& options, comm::Group& servers)
    : options_(options),
      servers_(servers),
      params_(new_array(shard), shard.entries),
      optimizer_(optim::make_optimizer(options.optimizer, params_)),
      pulled_(static_cast<size_t>(options.workers)),
      clocks_(static_cast<size_t>(options.workers)),
      active_(static_cast<size_t>(options.workers)),
      staleness_(options.workers),
      gathered_(static_cast<size_t>(options.workers)) {}

void ShardServer::fail() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
  changed_.notify_all();
}

void ShardServer::wait(Lock& lock, const std::function<bool()>& ready) {
  changed_.wait(lock, [&] { return failed_ || ready(); });
  if (failed_) throw CommError("the server lost another worker");
}

void ShardServer::answer(int worker, ServerLink& link) {
  const at::Tensor grads = at::empty_like(params_.values), values = at::empty_like(params_.values);
  for (;;) {
    const Request request = link.receive_plain<Request>();
    switch (request.ask) {
      case Ask::kPush:
        receive_gradient(link, request, grads);
        link.send_plain(push(worker, request, grads, values)).wait();
        link.send(values).wait();
        break;
      case Ask::kPull:
        link.send_plain(note(worker, request, values)).wait();
        link.send(values).wait();
        break;
      case Ask::kStaleness:
        send_staleness(link);
        break;
      case Ask::kSave:
        save(link);
        break;
      case Ask::kRestore:
        restore(link);
        link.send_plain(Reply{}).wait();
        break;
      case Ask::kLeave:
        return;
      case Ask::kValues:
        link.receive(values).wait();
        [[fallthrough]];
      default:
        link.send_plain(note(worker, request, values)).wait();
    }
  }
}

Reply ShardServer::note(int worker, const Request& request, const at::Tensor& values) {
  const auto mine = static_cast<size_t>(worker);
  const std::lock_guard lock(mutex_);
  Reply reply;
  switch (request.ask) {
    case Ask::kValues:
      params_.values.copy_(values);
      break;
    case Ask::kPull:
      values.copy_(params_.values);
      pulled_[mine] = version_;
      break;
    case Ask::kOpen:
      ticket_ = request.from;
      tickets_end_ = request.to;
      std::fill(clocks_.begin(), clocks_.end(), 0);
      std::fill(active_.begin(), active_.end(), true);
      break;
    case Ask::kTicket:
      reply.ticket = next_ticket();
      break;
    case Ask::kTaken:
      reply.ticket = ticket_;
      break;
    case Ask::kStop:
      tickets_end_ = std::min(tickets_end_, ticket_);
      break;
    case Ask::kDone:
      active_[mine] = false;
      changed_.notify_all();
      break;
    default:
      throw InternalError("a worker asked what this is no answer to");
  }
  return reply;
}

int64_t ShardServer::next_ticket() { return ticket_ < tickets_end_ ? ticket_++ : -1; }

Reply ShardServer::push(int worker, const Request& request, const at::Tensor& grads,
                        const at::Tensor& values) {
  Lock lock(mutex_);
  const Reply reply = options_.staleness == 0 ? push_together(lock, worker, request, grads)
                                              : push_freely(lock, worker, request, grads);
  values.copy_(params_.values);
  pulled_[static_cast<size_t>(worker)] = version_;
  return reply;
}

void ShardServer::update(const at::Tensor& grads, double lr, double scale) {
  if (options_.before_update) options_.before_update(version_ + 1);
  params_.grads = grads;
  optimizer_->step(params_, lr, scale);
  ++version_;
}

Reply ShardServer::push_freely(Lock& lock, int worker, const Request& request, const at::Tensor& grads) {
  const auto mine = static_cast<size_t>(worker);
  const int64_t staleness = version_ - pulled_[mine];
  const auto slow_down = options_.staleness_lr ? std::max<int64_t>(1, staleness) : 1;
  update(grads, request.lr / static_cast<double>(slow_down), request.scale);
  staleness_.count(worker, staleness);
  const Reply reply{.ticket = next_ticket()};
  ++clocks_[mine];
  changed_.notify_all();
  wait(lock, [&] { return may_go_on(worker); });
  return reply;
}

bool ShardServer::may_go_on(int worker) const {
  if (options_.staleness == ShardServerOptions::kFree) return true;
  const int64_t own = clocks_[static_cast<size_t>(worker)];
  int64_t slowest = own;
  for (size_t other = 0; other < clocks_.size(); ++other) {
    if (active_[other]) slowest = std::min(slowest, clocks_[other]);
  }
  return own - slowest <= options_.staleness;
}

Reply ShardServer::push_together(Lock& lock, int worker, const Request& request, const at::Tensor& grads) {
  gathered_[static_cast<size_t>(worker)] = grads;
  const int64_t round = round_;
  staleness_.count(worker, 0);
  if (++arrived_ < options_.workers) {
    wait(lock, [&] { return round_ != round; });
  } else {
    // In the order of ranks, so that the bits do not depend on who came first.
    const at::Tensor& sum = gathered_.front();
    for (size_t other = 1; other < gathered_.size(); ++other) sum.add_(gathered_[other]);
    const double scale = clipped_scale(sum, request);
    if (std::isfinite(norm_)) update(sum, request.lr, scale);
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  // No further round can end before this worker is answered: the norm is still this round's.
  return {.ticket = -1, .norm = norm_};
}

double ShardServer::clipped_scale(const at::Tensor& grads, const Request& request) {
  norm_ = 0;
  if (options_.clip <= 0 && request.wants_norm == 0) return request.scale;
  norm_ = optim::gradient_norm(grads, request.scale);
  if (servers_.size() > 1) {
    const at::Tensor square = at::full({1}, norm_ * norm_, at::kDouble);
    servers_.all_reduce(square, comm::Op::kSum).wait();
    norm_ = std::sqrt(square.item<double>());
  }
  return request.scale * optim::clip_factor(norm_, options_.clip);
}

void ShardServer::send_staleness(ServerLink& link) {
  const std::lock_guard lock(mutex_);
  link.send(staleness_.tensor()).wait();
}

void ShardServer::save(ServerLink& link) {
  const std::lock_guard lock(mutex_);
  nlohmann::json names = nlohmann::json::array();
  for (const auto& [name, tensor] : optimizer_->state()) names.push_back(name);
  link.send_text(names.dump());
  link.send_plain(optimizer_->steps_done()).wait();
  link.send(staleness_.tensor()).wait();
  for (const auto& [name, tensor] : optimizer_->state()) link.send(tensor).wait();
}

void ShardServer::restore(ServerLink& link) {
  const std::lock_guard lock(mutex_);
  optimizer_->set_steps_done(link.receive_plain<int64_t>());
  link.receive(staleness_.tensor()).wait();
  for (const auto& [name, tensor] : optimizer_->state()) link.receive(tensor).wait();
}

}  // namespace syncopate::parallel
