#include "tests/support/run_tests.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "tests/support/support.h"

namespace syncopate::test {

int run_tests(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int code = RUN_ALL_TESTS();
  std::set<std::string> allowed;
  std::ifstream list(source_dir() / "tests/allowed_skips.txt");
  for (std::string line; std::getline(list, line);) allowed.insert(line);
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  for (int s = 0; s < unit.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *unit.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      const std::string name = std::string(suite.name()) + "." + test.name();
      if (test.result()->Skipped() && !allowed.contains(name)) {
        std::fprintf(stderr, "%s was skipped but tests/allowed_skips.txt does not list it\n", name.c_str());
        code = 1;
      }
    }
  }
  if (unit.test_to_run_count() == 0 && !testing::GTEST_FLAG(list_tests)) {
    std::fprintf(stderr, "no test matches the filter %s\n", testing::GTEST_FLAG(filter).c_str());
    code = 1;
  }
  return code;
}

}  // namespace syncopate::test
