#include "syncopate/comm/gloo/store.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "syncopate/base/error.h"

namespace syncopate::comm {
namespace {

using Bytes = std::vector<uint8_t>;

class LifelineStore : public c10d::Store {
 public:
  LifelineStore(std::shared_ptr<lifeline::Lifeline> lifeline, std::chrono::milliseconds timeout)
      : c10d::Store(timeout), lifeline_(std::move(lifeline)) {}

  // Pure virtual from 2.x on; libtorch 1.13 does not know it, hence no `override`.
  virtual c10::intrusive_ptr<c10d::Store> clone() {
    return c10::make_intrusive<LifelineStore>(lifeline_, timeout_);
  }

  void set(const std::string& key, const Bytes& value) override {
    lifeline_->set(key, std::string(value.begin(), value.end()));
  }
  Bytes get(const std::string& key) override {
    const std::string value = lifeline_->get(key, timeout_);
    return {value.begin(), value.end()};
  }
  int64_t add(const std::string& key, int64_t value) override { return lifeline_->add(key, value); }
  bool deleteKey(const std::string& key) override { return lifeline_->erase(key); }
  bool check(const std::vector<std::string>& keys) override { return lifeline_->exist(keys); }
  int64_t getNumKeys() override { return lifeline_->count(); }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    const auto patience = timeout == kNoTimeout ? timeout_ : std::min(timeout, timeout_);
    for (const std::string& key : keys) lifeline_->get(key, patience);
  }

 private:
  std::shared_ptr<lifeline::Lifeline> lifeline_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> store_over(std::shared_ptr<lifeline::Lifeline> lifeline,
                                           std::chrono::milliseconds timeout) {
  return c10::make_intrusive<LifelineStore>(std::move(lifeline), timeout);
}

}  // namespace syncopate::comm
