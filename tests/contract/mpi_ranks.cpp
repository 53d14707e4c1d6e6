#include "tests/contract/mpi_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "syncopate/base/error.h"
#include "syncopate/comm/mpi.h"

namespace syncopate::test {
namespace {

int number(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

int my_rank() { return number("OMPI_COMM_WORLD_RANK"); }

/// One call of run_mpi_ranks.
struct Round {
  std::atomic<int> port, left;
  std::array<std::atomic<int>, 8> thrown;  ///< each rank's exit code
};

struct Shared {
  std::atomic<int> mapped;
  std::array<std::array<std::atomic<int>, MpiBoard::kTallies>, 200> pages;
  std::array<Round, 400> rounds;
};

bool until(const std::function<bool()>& ready) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// In a file that has no name any more once all have it.
Shared& shared() {
  static Shared* const memory = [] {
    // They have one parent, which is this run's alone.
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() / fmt::format("syncopate-contract-{}", ::getppid());
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    check(descriptor >= 0 && ::ftruncate(descriptor, sizeof(Shared)) == 0, "ranks share a file");
    void* const mapped = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    check(mapped != MAP_FAILED, "ranks share memory");
    ::close(descriptor);
    auto* const all = static_cast<Shared*>(mapped);
    ++all->mapped;
    check(until([&] { return all->mapped == mpi_ranks(); }), "all ranks come");
    ::unlink(file.c_str());
    return all;
  }();
  return *memory;
}

/// MPI ends where it was used; gtest's own main knows nothing of it.
class EndMpi : public testing::Environment {
 public:
  void TearDown() override {
    if (mpi_ranks() == 0) return;
    lifeline::LifelineServerOptions where;
    lifeline::LifelineServer server(where);
    lifeline::Lifeline alone({{"127.0.0.1", server.port()}, 0, 1, kPatience, kPatience, "", {}});
    comm::close_mpi(alone);
    alone.goodbye();
  }
};
[[maybe_unused]] const auto* const at_the_end = testing::AddGlobalTestEnvironment(new EndMpi);

}  // namespace

int mpi_ranks() { return number("OMPI_COMM_WORLD_SIZE"); }

std::atomic<int>& MpiBoard::Page::tally(size_t place) const { return shared().pages.at(number_).at(place); }

MpiBoard::Page MpiBoard::next_page() {
  static size_t pages = 0;
  return Page(pages++);
}

void run_mpi_ranks(const std::function<void(comm::Group&)>& body, std::chrono::milliseconds timeout,
                   const OpenGroup& open) {
  static size_t rounds = 0;
  Round& round = shared().rounds.at(rounds++);
  const int rank = my_rank(), size = mpi_ranks();
  std::unique_ptr<lifeline::LifelineServer> server;
  if (rank == 0) {
    lifeline::LifelineServerOptions where;
    where.size = size;
    where.timeout = timeout;
    server = std::make_unique<lifeline::LifelineServer>(where);
    round.port = server->port();
  }
  check(until([&] { return round.port != 0; }), "rank 0 serves");
  std::exception_ptr mine;
  try {
    const auto line = std::make_shared<lifeline::Lifeline>(
        lifeline::LifelineOptions{{"127.0.0.1", round.port}, rank, size, timeout, kPatience, "", {}});
    line->await_all(kPatience);
    const std::unique_ptr<comm::Group> group = open ? open(line) : comm::open_mpi(line, timeout);
    body(*group);
    line->goodbye();
  } catch (const Error& error) {
    mine = std::current_exception();
    round.thrown.at(static_cast<size_t>(rank)) = static_cast<int>(error.code());
  }
  ++round.left;
  check(until([&] { return round.left == size; }), "all ranks are through");
  if (mine) std::rethrow_exception(mine);
  for (int other = 0; other < size; ++other) {
    const int thrown = round.thrown.at(static_cast<size_t>(other));
    if (thrown == static_cast<int>(ExitCode::kConfig)) throw ConfigError("rank {} failed", other);
    if (thrown != 0) throw CommError("rank {} failed", other);
  }
}

}  // namespace syncopate::test
