#include "tests/data/fuzz.h"

#include "tests/data/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::data::test {

int fuzz(const FuzzTarget& target, int count, uint64_t seed) {
  const syncopate::test::TempDir folder;
  Rng rng(seed);
  int refusals = 0;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = mutate(target.seed_text, rng);
    refusals += refused([&] { target.run(bytes, folder.path()); });
  }
  return refusals;
}

}  // namespace syncopate::data::test
