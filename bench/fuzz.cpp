// Damaged inputs by the hundred thousand: build with the preset asan to see more than crashes.
//   fuzz [inputs per target] [seed] [target]
#include "tests/data/fuzz.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

int main(int count, char** arguments) {
  const int inputs = count > 1 ? std::atoi(arguments[1]) : 100000;
  const auto seed = static_cast<uint64_t>(count > 2 ? std::atoll(arguments[2]) : 1);
  const std::string only = count > 3 ? arguments[3] : "";
  std::printf("%-16s %10s %10s %10s\n", "target", "inputs", "refused", "seconds");
  for (const auto& target : syncopate::test::all_targets()) {
    if (!only.empty() && target.name != only) continue;
    const auto start = std::chrono::steady_clock::now();
    const int refused = syncopate::test::fuzz(target, inputs, seed);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%-16s %10d %10d %10.1f\n", target.name.c_str(), inputs, refused, seconds);
    std::fflush(stdout);
  }
  return 0;
}
