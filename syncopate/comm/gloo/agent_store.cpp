#include "syncopate/comm/gloo/agent_store.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

namespace syncopate::comm {
namespace {

class TcpAgentStore : public lifeline::AgentStore {
 public:
  TcpAgentStore(const std::string& host, const c10d::TCPStoreOptions& options)
      : store_(c10::make_intrusive<c10d::TCPStore>(host, options)) {}
  void set(const std::string& key, const std::string& value) override {
    store_->set(key, std::vector<uint8_t>(value.begin(), value.end()));
  }
  std::string get(const std::string& key) override {
    const std::vector<uint8_t> value = static_cast<c10d::Store&>(*store_).get(key);
    return {value.begin(), value.end()};
  }

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

std::unique_ptr<lifeline::AgentStore> open_agent_store(const lifeline::Address& address,
                                                       std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(address.port);
  options.isServer = false;
  options.waitWorkers = false;
  options.timeout = timeout;
  return std::make_unique<TcpAgentStore>(address.host, options);
}

}  // namespace syncopate::comm
