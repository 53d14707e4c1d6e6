#include "tests/data/fuzz.h"

#include <cstdio>
#include <fstream>

#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::test {
int fuzz(const FuzzTarget& target, int count, uint64_t seed) {
  const TempDir scratch;
  int refusals = 0;
  for (int i = 0; i < count; ++i) {
    Rng rng(mix_key(seed, i));  // neighbouring seeds of an Rng share most of their stream
    const std::string bytes = mutate(target.seed_text, rng);
    try {
      refusals += refused([&] { target.run(bytes, scratch.path()); });
    } catch (...) {
      std::fprintf(stderr, "%s: input %d of seed %llu:\n%s\n", target.name.c_str(), i,
                   static_cast<unsigned long long>(seed), bytes.c_str());
      throw;
    }
  }
  return refusals;
}

void write_fresh(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<FuzzTarget> all_targets() {
  std::vector<FuzzTarget> all;
  for (const auto& targets : {table_targets(), corpus_targets()})
    all.insert(all.end(), targets.begin(), targets.end());
  return all;
}

}  // namespace syncopate::test
