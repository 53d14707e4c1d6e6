#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/comm/group.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/parallel/server/server_link.h"
#include "syncopate/parallel/server/shards.h"
#include "syncopate/parallel/staleness_histogram.h"

namespace syncopate::parallel {

struct ShardServerOptions {
  int workers = 1;
  /// 0: every worker's gradient goes into one sum and one update. More: a worker starts its next update only
  /// when it is at most so many ahead of the slowest. kFree: whenever it likes.
  int64_t staleness = kFree;
  bool staleness_lr = false;  ///< an update that is n updates old counts with lr / max(1, n)
  double clip = 0;            ///< in lockstep: limit of the norm of the summed gradient; 0: off
  optim::OptimizerOptions optimizer;
  std::function<void(int64_t number)> before_update;  ///< told of every update, from 1; may be empty

  static constexpr int64_t kFree = -1;
};

/// A shard of the parameters and its optimizer, in host memory. Each worker has a thread here that answers
/// it. A gradient is applied when it has arrived whole, or not at all.
class ShardServer {
 public:
  /// `servers` (all of them, in lockstep) must outlive this.
  ShardServer(const Layout& shard, const ShardServerOptions& options, comm::Group& servers);

  /// Answers a worker until it leaves. Throws CommError when it is gone, or when `fail` was called.
  void answer(int worker, ServerLink& link);
  /// Ends the waiting of all threads for each other.
  void fail();

 private:
  using Lock = std::unique_lock<std::mutex>;
  /// All that is answered at once; `values` come or go with some requests.
  Reply note(int worker, const Request& request, const at::Tensor& values);
  Reply push(int worker, const Request& request, const at::Tensor& grads, const at::Tensor& values);
  Reply push_freely(Lock& lock, int worker, const Request& request, const at::Tensor& grads);
  Reply push_together(Lock& lock, int worker, const Request& request, const at::Tensor& grads);
  void update(const at::Tensor& grads, double lr, double scale);
  double clipped_scale(const at::Tensor& grads, const Request& request);
  int64_t next_ticket();
  bool may_go_on(int worker) const;
  void wait(Lock& lock, const std::function<bool()>& ready);
  void send_staleness(ServerLink& link);
  void save(ServerLink& link);
  void restore(ServerLink& link);

  const ShardServerOptions options_;
  comm::Group& servers_;
  std::mutex mutex_;  ///< guards all that follows
  std::condition_variable changed_;
  tensor::FlatParams params_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  int64_t version_ = 0;          ///< updates so far
  std::vector<int64_t> pulled_;  ///< by worker: the version it computes with
  std::vector<int64_t> clocks_;  ///< by worker: its updates since kOpen
  std::vector<bool> active_;     ///< by worker: between kOpen and kDone
  StalenessHistogram staleness_;
  int64_t ticket_ = 0, tickets_end_ = 0;
  std::vector<at::Tensor> gathered_;  ///< in lockstep: this round's gradients by worker
  int arrived_ = 0;
  int64_t round_ = 0;
  double norm_ = 0;
  bool failed_ = false;
};

/// A server process: answers the workers, which are the first `options.workers` ranks of `world`, until all
/// have left. `failed` is told of an error of this process while the workers still wait for it. Throws that
/// error.
void serve(comm::Group& world, const ShardServerOptions& options,
           const std::function<void(const Error&)>& failed = {});

}  // namespace syncopate::parallel
