// What an all-reduce costs among processes of one machine: shared memory against Gloo over loopback, both
// groups in the same processes and taking turns. Prints microseconds of an operation (the median) and the bus
// bandwidth, 2 (n - 1) / n times the tensor's bytes per second.
//   build/bench/exchange [processes] [rounds]
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "syncopate/base/clock.h"
#include "syncopate/comm/open.h"

namespace {

using namespace syncopate;

comm::Membership join(const std::string& backend, int rank, int size, const std::filesystem::path& folder) {
  comm::CommOptions options;
  options.rank = rank;
  options.size = size;
  options.backend = backend;
  options.rendezvous.kind = lifeline::RendezvousPoint::Kind::kFile;
  options.rendezvous.file = folder / backend;
  return comm::open(options);
}

double median_seconds(comm::Group& group, const at::Tensor& tensor, int rounds) {
  std::vector<double> all;
  for (int k = 0; k < rounds; ++k) {
    group.barrier();
    const Stopwatch watch;
    group.all_reduce(tensor, comm::Op::kSum).wait();
    all.push_back(watch.seconds());
  }
  std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
  return all[static_cast<size_t>(rounds / 2)];
}

void measure(int rank, int size, int rounds, const std::filesystem::path& folder) {
  at::set_num_threads(1);
  comm::Membership gloo = join("gloo", rank, size, folder), shm = join("shm", rank, size, folder);
  if (rank == 0)
    fmt::print(
        "| {} processes, all-reduce of | gloo, µs | shm, µs | gloo, GB/s | shm, GB/s | times as fast |\n"
        "|---|---|---|---|---|---|\n",
        size);
  for (const int64_t bytes : {int64_t{4}, int64_t{1} << 10, int64_t{32} << 10, int64_t{1} << 20,
                              int64_t{8} << 20, int64_t{64} << 20}) {
    const at::Tensor tensor = at::zeros({bytes / 4});
    const int turns = bytes <= (1 << 20) ? 10 * rounds : rounds;
    std::vector<double> by_gloo, by_shm;
    constexpr int kTurns = 3;
    for (int k = 0; k < kTurns; ++k) {
      by_gloo.push_back(median_seconds(*gloo.group, tensor, turns));
      by_shm.push_back(median_seconds(*shm.group, tensor, turns));
    }
    std::sort(by_gloo.begin(), by_gloo.end());
    std::sort(by_shm.begin(), by_shm.end());
    const double g = by_gloo[kTurns / 2], s = by_shm[kTurns / 2];
    const double bus = 2e-9 * (size - 1) / size * static_cast<double>(bytes);
    if (rank == 0) {
      fmt::print("| {} bytes | {:.1f} | {:.1f} | {:.2f} | {:.2f} | {:.1f} |\n", bytes, 1e6 * g, 1e6 * s,
                 bus / g, bus / s, g / s);
      std::fflush(stdout);
    }
  }
  shm.leave();
  gloo.leave();
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 30;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("syncopate-exchange-{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  for (int rank = 0; rank < size; ++rank) {
    if (::fork() != 0) continue;
    measure(rank, size, rounds, folder);
    std::_Exit(0);
  }
  bool failed = false;
  for (int status = 0; ::wait(&status) > 0;) failed = failed || status != 0;
  std::filesystem::remove_all(folder);
  return failed ? 1 : 0;
}
