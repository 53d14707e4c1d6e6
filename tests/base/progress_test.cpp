#include "syncopate/base/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "syncopate/base/text.h"

namespace syncopate {
namespace {

const std::vector<std::string> kDetails{"loss 0.1234", "512 examples/s"};

TEST(Progress, LineFitsEveryTerminal) {
  for (int columns = 1; columns <= 120; ++columns) {
    const std::string line = progress_line(9999, 10000, kDetails, "1:23 left", columns);
    EXPECT_LT(columns_of(line), static_cast<size_t>(std::max(columns, 2))) << line;
  }
}

TEST(Progress, WhatMattersStaysLongest) {
  const auto line = [](int columns) { return progress_line(5, 10, kDetails, "1:23 left", columns); };
  EXPECT_EQ(line(80), "██████░░░░░░ step 5/10 · loss 0.1234 · 512 examples/s · 1:23 left");
  EXPECT_EQ(line(40), "step 5/10 · loss 0.1234 · 1:23 left");
  EXPECT_EQ(line(30), "██░░░ step 5/10 · loss 0.1234");
  EXPECT_EQ(line(12), "step 5/10");
}

TEST(Progress, TheLastStepIsShownOnceAndStays) {
  for (const auto style : {Progress::Style::kLines, Progress::Style::kBar}) {
    testing::internal::CaptureStderr();
    {
      Progress progress(style, 40);
      for (int step = 1; step <= 38; ++step) progress.update(step, 0, kDetails);
      progress.finish(40);  // another worker made the last two
      progress.say("done");
    }
    const std::string said = testing::internal::GetCapturedStderr();
    const size_t last = said.find("step 40/40");
    ASSERT_NE(last, std::string::npos) << said;
    EXPECT_EQ(said.find("step 40/40", last + 1), std::string::npos) << said;
    EXPECT_EQ(said.substr(said.find('\n', last)), "\ndone\n") << "nothing wipes it away";
  }
}

TEST(Progress, WhatIsSaidBetweenDoesNotWipeTheEndAway) {
  testing::internal::CaptureStderr();
  {
    Progress progress(Progress::Style::kBar, 40);
    progress.update(20, 0, kDetails);
    progress.say("epoch 1");  // wipes the bar
    progress.finish(20);      // the run ends here: patience, or a time limit
    progress.say("done");
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const size_t epoch = said.find("epoch 1");
  ASSERT_NE(epoch, std::string::npos) << said;
  EXPECT_NE(said.find("step 20/40", epoch), std::string::npos) << said;
}

TEST(Progress, FollowsTheTerminalWhenItIsResized) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(master, 0);
  ASSERT_EQ(::grantpt(master) | ::unlockpt(master), 0);
  const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  for (const unsigned short columns : {40, 55}) {
    const winsize size{.ws_row = 20, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::ioctl(master, TIOCSWINSZ, &size), 0);
    EXPECT_EQ(terminal_columns(terminal), columns);
  }
  ::close(terminal);
  ::close(master);
  EXPECT_EQ(terminal_columns(-1), 80) << "none there";
}

TEST(Progress, ABarIsWipedForALineAndComesBack) {
  testing::internal::CaptureStderr();
  {
    Progress progress(Progress::Style::kBar, 40);
    progress.update(1, 0, kDetails);
    progress.say("epoch 1");
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("\r\033[Kepoch 1\n"), std::string::npos) << said;
}

}  // namespace
}  // namespace syncopate
