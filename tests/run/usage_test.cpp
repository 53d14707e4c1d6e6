#include "syncopate/run/records/usage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/support/support.h"

namespace syncopate::run {
namespace {

/// A /proc of our own, in which 100 ticks are a second.
class Machine {
 public:
  OutsideLoad::Source source() {
    return {.proc = folder_, .seconds = [this] { return now_; }, .ticks_per_second = 100};
  }
  /// CPU seconds so far: of the whole machine, and of processes 7 and 8.
  void at(double now, double machine, double seventh, double eighth) {
    now_ = now;
    const auto ticks = [](double seconds) { return std::llround(100 * seconds); };
    // user nice system idle iowait irq softirq steal guest guest_nice
    write("stat",
          fmt::format("cpu  {} 0 0 99999 55555 0 0 {} 7777 0\ncpu0 1 2 3\n", ticks(machine) - 10, 10));
    write("7/stat", fmt::format("7 (a) b (c) S 1 1 1 0 0 0 1 2 3 4 {} {} 9 9 20\n", ticks(seventh), 0));
    write("8/stat", fmt::format("8 (x) S 1 1 1 0 0 0 1 2 3 4 {} {} 9 9 20\n", 0, ticks(eighth)));
  }
  void end_process(int process) { std::filesystem::remove_all(folder_ / std::to_string(process)); }

 private:
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  test::TempDir temporary_;
  std::filesystem::path folder_ = temporary_.path();
  double now_ = 0;
};

TEST(OutsideLoad, IsWhatOthersDo) {
  Machine machine;
  machine.at(0, 1000, 10, 20);
  OutsideLoad load({7, 8}, machine.source());
  EXPECT_TRUE(std::isnan(load.mean())) << "too early";
  machine.at(10, 1035, 19, 28);  // 35 CPU seconds in ten, 9 + 8 of them ours
  load.look();
  EXPECT_NEAR(load.mean(), 1.8, 1e-9);
  machine.at(20, 1053, 28, 37);  // and in the next ten none but ours
  load.look();
  EXPECT_NEAR(load.mean(), 0.9, 1e-9);
  // Without one of its processes that one's work counts as others'.
  machine.at(0, 1000, 10, 20);
  OutsideLoad less({7}, machine.source());
  machine.at(10, 1035, 19, 28);
  less.look();
  EXPECT_NEAR(less.mean(), 2.6, 1e-9);
}

TEST(OutsideLoad, SaysNothingThatItDoesNotKnow) {
  Machine machine;
  machine.at(0, 1000, 10, 20);
  OutsideLoad load({7, 8}, machine.source());
  machine.at(10, 1035, 19, 28);
  load.look();
  machine.at(20, 1099, 20, 28);
  machine.end_process(8);
  load.look();
  EXPECT_NEAR(load.mean(), 1.8, 1e-9) << "as long as all lived";

  machine.at(0, 1000, 10, 20);
  OutsideLoad frozen({7, 8}, machine.source());
  machine.at(10, 1000, 19, 28);  // a sandbox's
  frozen.look();
  EXPECT_TRUE(std::isnan(frozen.mean()));

  OutsideLoad nowhere({7}, {.proc = "/nowhere"});
  nowhere.look();
  EXPECT_TRUE(std::isnan(nowhere.mean()));
}

TEST(Usage, ReadsThisMachine) {
  EXPECT_GE(machine_cores(), 1);
  const int64_t before = peak_memory();
  EXPECT_GT(before, 1 << 20);
  const std::vector<char> held(64 << 20, 1);
  EXPECT_GE(peak_memory(), before);
  EXPECT_GT(peak_memory(), static_cast<int64_t>(held.size()));
}

}  // namespace
}  // namespace syncopate::run
