#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace syncopate::run {

/// What the CPU can execute, by name of the instructions that matter here.
struct CpuFeatures {
  bool avx = false, avx2_fma = false, avx512 = false;
};
CpuFeatures cpu_features();

std::string cpu_name();  ///< as /proc/cpuinfo has it

/// The OpenBLAS core type to ask for instead of the one it chose, if that one is slower than this CPU needs
/// ("Prescott" for a CPU newer than the library) or would execute instructions that the CPU does not have.
/// Who `asked_for` one that has vectors and runs here keeps it.
std::optional<std::string> better_core_type(const std::string& chosen, CpuFeatures cpu,
                                            bool asked_for = false);

/// How this process computes; two runs are bit-identical only where these agree.
struct ComputeSetup {
  std::string cpu;        ///< model name
  std::string blas;       ///< "OpenBLAS 0.3.21", "MKL", ...
  std::string core_type;  ///< OpenBLAS's kernels: "SkylakeX"; empty for others
  std::string vectors;    ///< ATen's kernels: "AVX512"
  std::string torch;      ///< version
  int threads = 1;
  std::string device = "cpu";      ///< "cuda:0"
  std::string precision = "fp32";  ///< of matrix products

  std::string sentence() const;
  nlohmann::ordered_json to_json() const;
};

/// The libraries read their core type and how their threads wait when they are loaded. So: sets the
/// environment that this CPU needs and starts this program again in place (same process, same arguments),
/// once. Also tells the allocator to keep memory between steps. Call first in a `main` that computes.
void prepare_process(char** argv);

/// Environment for `threads` threads, inherited by workers started from here.
void set_thread_environment(int threads);

/// Makes this process compute with `threads` threads and says what is in use.
ComputeSetup set_up_compute(int threads);

/// Threads by default: all cores for one worker, one each when several share the machine.
int default_threads(int workers_here);

/// Throws ConfigError for more workers and servers than this machine could sensibly start.
void require_place_for(int64_t processes);

}  // namespace syncopate::run
