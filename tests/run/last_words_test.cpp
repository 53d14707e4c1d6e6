#include "syncopate/run/last_words.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "syncopate/base/mapped_file.h"
#include "syncopate/base/standard_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::run {
namespace {

/// Ends the process; `told`: the others are told first.
void end_by(const std::function<void()>& failure, bool told) {
  speak_before_terminating();
  const LastWords words([told](const LastWord& word) {
    if (told) tell("to others: {}", word.sentence);
    return told;
  });
  failure();
}

void read_a_file_that_is_cut_short() {
  const test::TempDir folder;
  test::write_text(folder / "x", std::string(size_t{1} << 16, 'x'));
  const MappedFile file(folder / "x", "text");
  std::filesystem::resize_file(folder / "x", 10);
  [[maybe_unused]] const char last = *const_cast<const volatile char*>(&file.bytes().back());
}

void throw_in_a_thread() {
  std::thread([] { throw std::runtime_error("lost"); }).join();
}

class LastWordsOfAProcess : public testing::Test {
 protected:
  LastWordsOfAProcess() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LastWordsOfAProcess, TellOthersOfAFileThatWasCutShort) {
  EXPECT_EXIT(end_by(read_a_file_that_is_cut_short, true), testing::ExitedWithCode(3),
              "to others: .*/x was cut short while it was read");
  EXPECT_EXIT(end_by(read_a_file_that_is_cut_short, false), testing::ExitedWithCode(3),
              "syncopate: .*/x was cut short while it was read");
}

TEST_F(LastWordsOfAProcess, TellOthersOfAnExceptionThatNobodyCaught) {
  EXPECT_EXIT(end_by(throw_in_a_thread, true), testing::ExitedWithCode(70),
              "to others: unexpected failure: lost");
}

}  // namespace
}  // namespace syncopate::run
