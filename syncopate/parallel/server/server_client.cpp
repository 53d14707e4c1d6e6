#include "syncopate/parallel/server/server_client.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/comm/metering/payload.h"
#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/parallel/server/gradient_runs.h"
#include "syncopate/parallel/strategy.h"

namespace syncopate::parallel {

ServerClient::ServerClient(comm::Group& world, comm::Group& workers, Options options)
    : world_(world), workers_(workers), options_(options), links_(open_links(world, workers.size())) {}

void ServerClient::start(Replica& replica) {
  const Layout layout = layout_of(replica.params);
  comm::broadcast_text(world_, to_text(layout), 0);
  shards_ = shards_of(layout, static_cast<int>(links_.size()), options_.whole_tensors);
  state_type_ = at::promote_types(layout.type, at::kFloat);
  take_parameters_of_rank_zero(replica, workers_);
  if (workers_.rank() == 0) send_values(replica);
  workers_.barrier();
}

void ServerClient::send_values(Replica& replica) {
  const at::Tensor values = replica.params.values.to(at::kCPU);
  for (size_t server = 0; server < links_.size(); ++server) {
    links_[server].send_plain(Request{.ask = Ask::kValues}).wait();
    {
      const comm::Carrying carrying(comm::Payload::kParameters);
      links_[server].send(shards_[server].of(values)).wait();
    }
    links_[server].receive_plain<Reply>();
  }
}

void ServerClient::ask(const Request& request) {
  std::vector<comm::Pending> sent;
  for (ServerLink& link : links_) sent.push_back(link.send_plain(request));
  for (comm::Pending& pending : sent) pending.wait();
  for (ServerLink& link : links_) link.receive_plain<Reply>();
}

void ServerClient::send_gradient(Replica& replica, const StepContext& context, Request request) {
  const at::Tensor grads = replica.params.grads.to(at::kCPU);
  std::vector<Slice> runs{{0, grads.numel()}};
  if (options_.sparse_rows) runs = gradient_runs(replica, context.rows);
  std::vector<comm::Pending> sent;
  for (size_t server = 0; server < links_.size(); ++server) {
    ServerLink& link = links_[server];
    const Slice& shard = shards_[server];
    const at::Tensor part = shard.of(grads);
    const std::vector<Slice> within = runs_within(runs, shard);
    request.elements = elements_of(within);
    // Packing costs a pass: not for a little.
    const bool whole = 4 * request.elements > 3 * shard.size();
    request.runs = whole ? -1 : static_cast<int64_t>(within.size());
    sent.push_back(link.send_plain(request));
    const comm::Carrying carrying(comm::Payload::kGradients);
    if (whole) {
      sent.push_back(link.send(part));
    } else if (!within.empty()) {
      sent.push_back(link.send(to_tensor(within)));
      sent.push_back(link.send(pack(part, within)));
    }
  }
  for (comm::Pending& pending : sent) pending.wait();
}

Reply ServerClient::push(Replica& replica, const StepContext& context, double scale, bool wants_norm) {
  Request request{.ask = Ask::kPush};
  request.lr = context.lr;
  request.scale = scale;
  request.wants_norm = wants_norm ? 1 : 0;
  send_gradient(replica, context, request);
  Reply first;
  for (size_t server = 0; server < links_.size(); ++server) {
    const Reply reply = links_[server].receive_plain<Reply>();
    if (server == 0) first = reply;
  }
  receive_values(replica);
  spare_ = first.ticket;
  has_spare_ = true;
  return first;
}

void ServerClient::receive_values(Replica& replica) {
  at::Tensor values = replica.params.values;
  if (!values.is_cpu()) {
    if (!host_.defined()) host_ = at::empty_like(values, values.options().device(at::kCPU));
    values = host_;
  }
  const comm::Carrying carrying(comm::Payload::kParameters);
  std::vector<comm::Pending> coming;
  for (size_t server = 0; server < links_.size(); ++server) {
    coming.push_back(links_[server].receive(shards_[server].of(values)));
  }
  for (comm::Pending& pending : coming) pending.wait();
  if (!replica.params.values.is_cpu()) replica.params.values.copy_(values);
}

void ServerClient::pull(Replica& replica) {
  ask({.ask = Ask::kPull});
  receive_values(replica);
}

void ServerClient::open(int64_t from, int64_t to) {
  has_spare_ = false;
  if (workers_.rank() == 0) ask({.ask = Ask::kOpen, .from = from, .to = to});
  workers_.barrier();
}

int64_t ServerClient::ask_for_ticket(Ask what) {
  links_.front().send_plain(Request{.ask = what}).wait();
  return links_.front().receive_plain<Reply>().ticket;
}

std::optional<int64_t> ServerClient::take(bool stop) {
  if (stop) ask_for_ticket(Ask::kStop);
  // One that came with an answer is this worker's, stop or not: nobody else will have it.
  if (!std::exchange(has_spare_, false)) spare_ = ask_for_ticket(Ask::kTicket);
  return spare_ < 0 ? std::nullopt : std::optional<int64_t>(spare_);
}

int64_t ServerClient::close(Replica& replica) {
  ask({.ask = Ask::kDone});
  workers_.barrier();
  pull(replica);
  const int64_t next = ask_for_ticket(Ask::kTaken);
  workers_.barrier();  // nobody opens the next section before all know where this one ended
  return next;
}

StalenessHistogram ServerClient::staleness() {
  StalenessHistogram histogram(workers_.size());
  links_.front().send_plain(Request{.ask = Ask::kStaleness}).wait();
  links_.front().receive(histogram.tensor()).wait();
  return histogram;
}

ServerState ServerClient::save() {
  ServerState state;
  for (size_t server = 0; server < links_.size(); ++server) {
    ServerLink& link = links_[server];
    link.send_plain(Request{.ask = Ask::kSave}).wait();
    const auto names = nlohmann::json::parse(link.receive_text()).get<std::vector<std::string>>();
    const auto steps = link.receive_plain<int64_t>();
    const at::Tensor staleness = StalenessHistogram(workers_.size()).tensor();
    link.receive(staleness).wait();
    if (server == 0) {
      state.steps = at::full({1}, steps, at::kLong);
      state.staleness = staleness;
      for (const std::string& name : names)
        state.tensors.push_back({name, at::zeros({shards_.back().end}, at::dtype(state_type_))});
    }
    for (const auto& [name, tensor] : state.tensors) {
      link.receive(shards_[server].of(tensor)).wait();
    }
  }
  return state;
}

void ServerClient::restore(const ServerState& state, Replica& replica) {
  for (size_t server = 0; server < links_.size(); ++server) {
    ServerLink& link = links_[server];
    link.send_plain(Request{.ask = Ask::kRestore}).wait();
    link.send_plain(state.steps.item<int64_t>()).wait();
    link.send(state.staleness).wait();
    for (const auto& [name, tensor] : state.tensors) {
      link.send(shards_[server].of(tensor)).wait();
    }
    link.receive_plain<Reply>();
  }
  send_values(replica);
}

void ServerClient::leave() {
  for (ServerLink& link : links_) link.send_plain(Request{.ask = Ask::kLeave}).wait();
}

}  // namespace syncopate::parallel
