#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/base/process.h"
#include "syncopate/lifeline/socket.h"

namespace syncopate::run {

/// NVIDIA's Multi-Process Service, for processes that share a GPU: without it the GPU serves them by turns,
/// with it their kernels run side by side. Ends with this object, which outlives the processes, and with this
/// process, however that ends.
class GpuService {
 public:
  /// Null where there is none to start: its program is not on the PATH or does not get ready, or one serves
  /// this user already (then whoever starts on the GPU uses that).
  static std::unique_ptr<GpuService> start(std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~GpuService();
  GpuService(const GpuService&) = delete;
  GpuService& operator=(const GpuService&) = delete;

  /// What those processes need in their environment.
  const std::vector<std::pair<std::string, std::string>>& environment() const { return environment_; }

 private:
  GpuService(std::filesystem::path program, std::filesystem::path folder);
  bool ready(std::chrono::milliseconds patience);
  void guard();
  ProcessOptions beside(const char* log) const;  ///< of a process that knows the service
  Process call(const std::string& argument) const;

  std::filesystem::path program_, folder_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::unique_ptr<Process> process_;
  lifeline::Socket alive_;          ///< the end of a pipe that closes when this process is gone
  std::unique_ptr<Process> guard_;  ///< waits for that at the other end
};

}  // namespace syncopate::run
