// What an all-reduce costs among processes of one machine: shared memory against Gloo over loopback, and MPI
// where mpirun starts this, all groups in the same processes and taking turns. Prints microseconds of an
// operation (the median) and the bus bandwidth, 2 (n - 1) / n times the tensor's bytes per second. "room":
// over shared memory, of a tensor that lies in the group's own room, as gradients do.
//   build/bench/exchange [processes] [rounds]
//   mpirun -n PROCESSES build/bench/exchange PROCESSES [rounds]
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

/// A group, and where its tensors lie.
struct Lane {
  std::string name;
  comm::Group* group;
  bool in_room = false;
};

void measure(int rank, int size, int rounds, const std::vector<std::string>& backends,
             const std::filesystem::path& folder) {
  at::set_num_threads(1);
  std::vector<comm::Membership> all;
  for (const std::string& backend : backends) all.push_back(join(backend, rank, size, folder));
  std::vector<Lane> lanes;
  for (const comm::Membership& one : all) {
    lanes.push_back({one.backend, one.group.get()});
    if (one.backend == "shm") lanes.push_back({"room", one.group.get(), true});
  }
  if (rank == 0) {
    fmt::print("| {} processes, all-reduce of |", size);
    for (const Lane& lane : lanes) fmt::print(" {0}, µs | {0}, GB/s |", lane.name);
    fmt::print("\n|---|");
    for (size_t k = 0; k < lanes.size(); ++k) fmt::print("---|---|");
    fmt::print("\n");
  }
  for (const int64_t bytes : {int64_t{4}, int64_t{1} << 10, int64_t{32} << 10, int64_t{1} << 20,
                              int64_t{8} << 20, int64_t{64} << 20}) {
    std::vector<at::Tensor> tensors;
    for (const Lane& lane : lanes)
      tensors.push_back(lane.in_room ? lane.group->room(bytes / 4, at::kFloat) : at::zeros({bytes / 4}));
    const int turns = bytes <= (1 << 20) ? 10 * rounds : rounds;
    constexpr int kTurns = 3;
    std::vector<std::vector<double>> seconds(lanes.size());
    for (int k = 0; k < kTurns; ++k) {
      for (size_t b = 0; b < lanes.size(); ++b)
        seconds[b].push_back(median_seconds(*lanes[b].group, tensors[b], turns));
    }
    const double bus = 2e-9 * (size - 1) / size * static_cast<double>(bytes);
    if (rank != 0) continue;
    fmt::print("| {} bytes |", bytes);
    for (std::vector<double>& one : seconds) {
      std::sort(one.begin(), one.end());
      fmt::print(" {:.1f} | {:.2f} |", 1e6 * one[kTurns / 2], bus / one[kTurns / 2]);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  for (comm::Membership& one : all) one.leave();
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 30;
  const char* const by_mpi = std::getenv("OMPI_COMM_WORLD_RANK");
  // Processes of one mpirun have one parent.
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      fmt::format("syncopate-exchange-{}", by_mpi ? ::getppid() : ::getpid());
  std::filesystem::create_directories(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  if (by_mpi != nullptr) {
    const int rank = std::atoi(by_mpi);
    measure(rank, size, rounds, {"gloo", "shm", "mpi"}, folder);
    if (rank == 0) std::filesystem::remove_all(folder);
    return 0;
  }
  for (int rank = 0; rank < size; ++rank) {
    if (::fork() != 0) continue;
    measure(rank, size, rounds, {"gloo", "shm"}, folder);
    std::_Exit(0);
  }
  bool failed = false;
  for (int status = 0; ::wait(&status) > 0;) failed = failed || status != 0;
  std::filesystem::remove_all(folder);
  return failed ? 1 : 0;
}
