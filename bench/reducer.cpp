#include "bench/reducer.h"

#include <torch/version.h>

#if TORCH_VERSION_MAJOR < 2
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>

namespace syncopate::bench {
namespace {

constexpr int64_t kMiB = 1024 * 1024;

class ReducerStrategy : public parallel::Strategy {
 public:
  ReducerStrategy(int rank, int size, const std::string& store_file) : size_(size) {
    auto options = c10d::ProcessGroupGloo::Options::create();
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::FileStore>(store_file, size), rank, size, options);
  }

  void start(parallel::Replica& replica) override {
    std::vector<at::Tensor> values{replica.params.values};
    group_->broadcast(values)->wait();
    std::vector<at::Tensor> parameters;
    std::unordered_map<size_t, std::string> names;
    for (const auto& named : replica.model.parameters()) {
      names[parameters.size()] = named.name;
      parameters.push_back(named.tensor);
    }
    const std::vector<size_t> limits{static_cast<size_t>(kMiB), static_cast<size_t>(25 * kMiB)};
    auto [buckets, sizes] = c10d::compute_bucket_assignment_by_size(parameters, limits);
    std::reverse(buckets.begin(), buckets.end());
    std::reverse(sizes.begin(), sizes.end());
    reducer_ = std::make_unique<c10d::Reducer>(parameters, buckets, sizes, group_,
                                               std::vector<bool>(parameters.size(), false), 25 * kMiB, false,
                                               false, names, kMiB);
  }
  void before_backward(parallel::Replica&, const parallel::StepContext&, bool last) override {
    if (!last) return;
    reducer_->rebuild_buckets();
    reducer_->prepare_for_forward();
    reducer_->prepare_for_backward({});
  }
  parallel::Update step(parallel::Replica& replica, const parallel::StepContext& context) override {
    parallel::StepContext mine = context;
    mine.count /= size_;  // the reducer divides by the number of ranks itself
    parallel::Update update = replica.apply(mine);
    update.touched.emplace();
    return update;
  }

 private:
  int size_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

}  // namespace

std::unique_ptr<parallel::Strategy> make_reducer(int rank, int size, const std::string& store_file) {
  return std::make_unique<ReducerStrategy>(rank, size, store_file);
}

}  // namespace syncopate::bench
#else
namespace syncopate::bench {
std::unique_ptr<parallel::Strategy> make_reducer(int, int, const std::string&) { return nullptr; }
}  // namespace syncopate::bench
#endif
