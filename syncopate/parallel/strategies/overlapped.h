#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "syncopate/parallel/averager.h"
#include "syncopate/parallel/strategies/row_exchange.h"
#include "syncopate/parallel/strategy.h"

namespace syncopate::parallel {

/// Distributed data parallel: gradients are cut into buckets in the order they become ready, and a bucket's
/// exchange starts as soon as it is full, while the backward pass goes on (Li et al., VLDB 2020). Buckets
/// start in one order on every rank: number k waits for number k-1 to start. What never became ready (a
/// parameter unused in the step) starts after the backward pass.
class Overlapped : public Strategy {
 public:
  struct Options {
    double bucket_mib = 25;
    double first_bucket_mib = 1;  ///< small, so that the exchange begins early
    bool sparse_rows = true;      ///< exchange only the rows of embedding tables that were read
    bool overlap = true;          ///< false: start every bucket after the backward pass
  };
  /// Told when an event happens, for tests and traces: "ready" with a parameter's name, "start" with a
  /// bucket.
  using Observer = std::function<void(const char* event, const std::string& what)>;

  /// `group` must outlive the strategy.
  Overlapped(comm::Group& group, std::unique_ptr<Averager> averager, Options options, Observer observer = {});
  ~Overlapped() override;
  void start(Replica& replica) override;
  void before_backward(Replica& replica, const StepContext& context, bool last_micro) override;
  Update step(Replica& replica, const StepContext& context) override;
  std::vector<StateTensor> state() override { return averager_->state(); }

  size_t bucket_count() const { return buckets_.size(); }

 private:
  struct Bucket {
    int64_t offset = 0, size = 0;  ///< of the flat gradient, in elements
    int parameters = 0;
    int waiting = 0;                    ///< parameters not ready yet in this step
    double begin = 0;                   ///< when it started, in a step that is traced
    std::unique_ptr<RowExchange> rows;  ///< for an embedding table exchanged by rows
    comm::Pending pending;
  };
  struct Hooks;

  void build(const std::vector<at::Tensor>& tables);
  void ready(size_t entry);
  void start_next();
  void note(size_t number);

  comm::Group& group_;
  std::unique_ptr<Averager> averager_;
  Options options_;
  Observer observer_;
  tensor::FlatParams* params_ = nullptr;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  ///< by entry
  std::unique_ptr<Hooks> hooks_;
  size_t started_ = 0;
  Trace* trace_ = nullptr;
  bool armed_ = false;
};

}  // namespace syncopate::parallel
