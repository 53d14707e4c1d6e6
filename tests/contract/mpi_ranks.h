#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>

#include "tests/contract/ranks.h"

namespace syncopate::test {

/// How many ranks mpirun has started of this program; 0: it did not start it. Each of them then runs the same
/// tests in the same order.
int mpi_ranks();

/// Memory that the processes which mpirun has started share, a page for each test.
class MpiBoard {
 public:
  static constexpr size_t kTallies = 8;
  class Page {
   public:
    explicit Page(size_t number) : number_(number) {}
    std::atomic<int>& tally(size_t place) const;

   private:
    size_t number_;
  };
  static Page next_page();
};

using OpenGroup = std::function<std::unique_ptr<comm::Group>(std::shared_ptr<lifeline::Lifeline>)>;

/// `body` on this process's rank; the others run it too. Returns when all are through, and throws everywhere
/// what one has thrown: an Error by its kind. Over MPI, or over what `open` makes.
void run_mpi_ranks(const std::function<void(comm::Group&)>& body,
                   std::chrono::milliseconds timeout = kPatience, const OpenGroup& open = {});

}  // namespace syncopate::test
