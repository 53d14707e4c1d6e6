// A program of its own, with what stands in for MPI where it is not there.
#include <cstdio>
#include <string>

#include "syncopate/base/error.h"
#include "syncopate/comm/open.h"

int main() {
  using namespace syncopate;
  const std::string expected =
      "this program was built without MPI: use the backend gloo, or install libopenmpi-dev and build it "
      "again";
  comm::CommOptions options;
  options.backend = "mpi";
  if (comm::open(options).backend != "none") return 1;  // who is alone needs none
  options.size = 2;
  try {
    comm::open(options);
  } catch (const ConfigError& error) {
    std::puts(error.what());
    return error.what() == expected ? 0 : 1;
  }
  return 1;
}
