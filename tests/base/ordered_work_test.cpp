#include "syncopate/base/ordered_work.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace syncopate {
namespace {

TEST(OrderedWork, ResultsComeInTheOrderOfThePieces) {
  std::vector<int> used, sizes;
  OrderedWork<int, int> work(
      3,
      [] {
        return [](int& piece) {
          std::this_thread::sleep_for(std::chrono::microseconds(piece % 7 * 100));
          return piece * piece;
        };
      },
      [&](int result) { used.push_back(result); });
  for (int i = 0; i < 200; ++i) {
    work.add(i);
    sizes.push_back(i + 1 - static_cast<int>(used.size()));
  }
  EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), 6) << "two for each thread are under way";
  work.finish();
  ASSERT_EQ(used.size(), 200U);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(used[static_cast<size_t>(i)], i * i);
}

TEST(OrderedWork, ThrowsAFailureInItsTurn) {
  int used = 0;
  OrderedWork<int, int> work(
      2,
      [] {
        return [](int& piece) {
          if (piece == 5) throw std::runtime_error("five");
          return piece;
        };
      },
      [&](int) { ++used; });
  EXPECT_THROW(
      {
        for (int i = 0; i < 20; ++i) work.add(i);
        work.finish();
      },
      std::runtime_error);
  EXPECT_EQ(used, 5);
}

}  // namespace
}  // namespace syncopate
