#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "syncopate/comm/group.h"

// How a worker and a server talk: the worker asks, the server answers, over a group of the two.
namespace syncopate::parallel {

enum class Ask : int64_t {
  kValues,     ///< here are the shard's parameters (they follow)
  kPull,       ///< send the shard's parameters
  kOpen,       ///< hand out tickets from..to-1
  kTicket,     ///< give me one
  kStop,       ///< give nobody another one
  kTaken,      ///< how far have they been taken?
  kPush,       ///< here is a gradient (it follows); send the new parameters
  kDone,       ///< no push of mine will follow until the next kOpen
  kStaleness,  ///< send how stale pushes were
  kSave,       ///< send the optimizer's state
  kRestore,    ///< here is the optimizer's state (it follows)
  kLeave,      ///< goodbye
};

struct Request {
  Ask ask = Ask::kPull;
  int64_t from = 0, to = 0;  ///< of kOpen
  double lr = 0, scale = 0;  ///< of kPush: the gradient counts times `scale`
  int64_t runs = -1;         ///< of kPush: the gradient is so many runs, packed; -1: it is whole
  int64_t elements = 0;      ///< in those
  int64_t wants_norm = 0;    ///< of kPush in lockstep: compute it, and leave out what is not finite
};

struct Reply {
  int64_t ticket = -1;  ///< -1: none is left
  double norm = 0;      ///< of the gradient that was applied, where the server had to know it
};

/// One end of a line between a worker and a server.
class ServerLink {
 public:
  explicit ServerLink(std::unique_ptr<comm::Group> pair) : pair_(std::move(pair)) {}

  comm::Pending send(const at::Tensor& tensor) { return pair_->send(tensor, 1 - pair_->rank(), 0); }
  comm::Pending receive(const at::Tensor& into) { return pair_->receive(into, 1 - pair_->rank(), 0); }
  void send_text(const std::string& text);
  std::string receive_text();

  template <typename Plain>
  comm::Pending send_plain(const Plain& plain) {
    static_assert(std::is_trivially_copyable_v<Plain>);
    return send(bytes_of(&plain, sizeof plain));
  }
  template <typename Plain>
  Plain receive_plain() {
    static_assert(std::is_trivially_copyable_v<Plain>);
    Plain plain;
    receive_bytes(&plain, sizeof plain);
    return plain;
  }

 private:
  static at::Tensor bytes_of(const void* data, size_t size);
  void receive_bytes(void* data, size_t size);

  std::unique_ptr<comm::Group> pair_;
};

/// A line from each of the first `workers` ranks to each rank behind them, the servers; in the order of the
/// other side's ranks. A server waits for a question for as long as the worker lives. Collective.
std::vector<ServerLink> open_links(comm::Group& world, int workers);

}  // namespace syncopate::parallel
