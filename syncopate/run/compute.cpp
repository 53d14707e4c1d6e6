#include "syncopate/run/compute.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/error.h"

namespace syncopate::run {
namespace {

constexpr const char* kPrepared = "SYNCOPATE_PREPARED";

template <typename Function>
Function* find_symbol(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

std::string openblas_core() {
  const auto core = find_symbol<char*()>("openblas_get_corename");
  return core != nullptr ? core() : "";
}

std::string blas_name() {
  if (const auto config = find_symbol<char*()>("openblas_get_config")) {
    const std::string text = config();
    return text.substr(0, text.find(' ', text.find(' ') + 1));
  }
  if (find_symbol<void()>("mkl_get_max_threads") != nullptr ||
      at::get_mkl_version().find("not found") == std::string::npos) {
    return "MKL";
  }
  return "reference BLAS (slow: install libopenblas0-pthread)";
}

/// ATen says it only inside a report: "... CPU capability usage: AVX2 ...".
std::string aten_vectors() {
  const std::string report = at::show_config();
  const std::string label = "CPU capability usage: ";
  const size_t start = report.find(label);
  if (start == std::string::npos) return "unknown vectors";
  return report.substr(start + label.size(), report.find('\n', start) - start - label.size());
}

int cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

CpuFeatures cpu_features() {
  CpuFeatures cpu;
#if defined(__x86_64__)
  cpu.avx = __builtin_cpu_supports("avx");
  cpu.avx2_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  cpu.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512cd");
#endif
  return cpu;
}

std::optional<std::string> better_core_type(const std::string& chosen, CpuFeatures cpu, bool asked_for) {
  static const std::set<std::string> with_avx512{"SkylakeX", "Cooperlake", "SapphireRapids"};
  static const std::set<std::string> with_avx2{"Haswell", "Zen"};
  if (with_avx512.contains(chosen) && cpu.avx512) return std::nullopt;
  if (with_avx2.contains(chosen) && cpu.avx2_fma && (asked_for || !cpu.avx512)) return std::nullopt;
  if (cpu.avx512) return "SkylakeX";  // also on AMD's newer CPUs, which an older library takes for a Haswell
  if (cpu.avx2_fma) return "Haswell";
  if (cpu.avx) return chosen == "Sandybridge" ? std::nullopt : std::optional<std::string>("Sandybridge");
  // Nothing known to gain; but a core type with vectors that this CPU lacks must go.
  if (with_avx512.contains(chosen) || with_avx2.contains(chosen) || chosen == "Sandybridge") return "Nehalem";
  return std::nullopt;
}

void prepare_process(char** argv) {
  // Steps allocate and free the same large tensors: returning them to the system costs a page fault per 4 kB.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  if (::getenv(kPrepared) != nullptr) return;
  ::setenv(kPrepared, "1", 1);
  // ATen's threads and OpenBLAS's take turns; by default those that have nothing to do spin and keep the
  // others off the cores: ten times slower on a busy machine.
  ::setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
  ::setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0);
#if defined(__x86_64__)
  const std::string chosen = openblas_core();
  const bool asked_for = ::getenv("OPENBLAS_CORETYPE") != nullptr;
  if (const auto better =
          chosen.empty() ? std::nullopt : better_core_type(chosen, cpu_features(), asked_for)) {
    ::setenv("OPENBLAS_CORETYPE", better->c_str(), 1);
  }
#endif
  ::execv("/proc/self/exe", argv);  // on failure we go on, slower
}

void set_thread_environment(int threads) {
  const std::string text = std::to_string(threads);
  ::setenv("OPENBLAS_NUM_THREADS", text.c_str(), 1);
  ::setenv("OMP_NUM_THREADS", text.c_str(), 1);
  ::setenv("MKL_NUM_THREADS", text.c_str(), 1);
}

ComputeSetup set_up_compute(int threads) {
  at::set_num_threads(threads);
  if (const auto set = find_symbol<void(int)>("openblas_set_num_threads")) set(threads);
  ComputeSetup setup;
  setup.cpu = cpu_name();
  setup.blas = blas_name();
  setup.core_type = openblas_core();
  setup.vectors = aten_vectors();
  setup.torch = TORCH_VERSION;
  setup.threads = threads;
  return setup;
}

int default_threads(int workers_here) { return workers_here > 1 ? 1 : cores(); }

void require_place_for(int64_t processes) {
  constexpr int64_t kPerCore = 32, kAnywhere = 64;
  const int64_t most = std::max(kAnywhere, kPerCore * cores());
  if (processes > most) {
    throw ConfigError(
        "{} workers and servers are too many for this machine, whose {} core{} can take {}; give "
        "fewer --workers, or start them on several machines",
        processes, cores(), cores() == 1 ? "" : "s", most);
  }
}

std::string ComputeSetup::sentence() const {
  return fmt::format("{} · {}{} · ATen {} · libtorch {} · {} thread{} per worker{}{}", cpu, blas,
                     core_type.empty() ? "" : fmt::format(" with {} kernels", core_type), vectors, torch,
                     threads, threads == 1 ? "" : "s", device == "cpu" ? "" : " · " + device,
                     precision == "fp32" ? "" : " · " + precision);
}

nlohmann::ordered_json ComputeSetup::to_json() const {
  return {{"cpu", cpu},     {"blas", blas},       {"core_type", core_type}, {"vectors", vectors},
          {"torch", torch}, {"threads", threads}, {"device", device},       {"precision", precision}};
}

}  // namespace syncopate::run
