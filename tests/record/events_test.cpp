#include "syncopate/record/events.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "syncopate/base/file.h"
#include "syncopate/record/bandwidth.h"
#include "tests/support/support.h"

namespace syncopate::record {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

TEST(Events, ChecksumsAreCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);            // the check value of CRC-32C
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  EXPECT_NE(crc32c("123456789"), 0xCBF43926U) << "the CRC of zip files";
}

// Made by TensorBoard 2.21's own RecordWriter and messages.
TEST(Events, BytesAreTensorBoards) {
  const std::string message = scalars_event(
      1700000000.5, 300, {{"train/loss", 0.6931472}, {"skipped", kNan}, {"test/accuracy", 0.75}});
  EXPECT_EQ(
      hex(tf_record(message)),
      "3700000000000000e7e8ca590900002040fc54d94110ac022a290a110a0a747261696e2f6c6f7373151872313f0a140a0d"
      "746573742f6163637572616379150000403fa52e2afa");
  EXPECT_EQ(hex(tf_record(version_event(1700000000.5))),
            "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110");
  EXPECT_EQ(hex(start_event(1700000000.5, 41)), "0900002040fc54d94110293a020801");
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Events, ARunThatResumesForgetsWhatDidNotHappen) {
  const test::TempDir folder;
  const auto events = folder / "tensorboard";
  {
    EventFolder first(events, std::nullopt);
    for (int64_t step = 1; step <= 300; ++step) first.write(step, {{"train/loss", 1.0 / step}});
  }
  ASSERT_EQ(files_in(events).size(), 1U);
  const std::filesystem::path before = files_in(events).front();
  const std::string all = read_file(before, "events");
  EXPECT_EQ(bytes_up_to(all, 300), all.size());
  EXPECT_EQ(bytes_up_to(all.substr(0, all.size() - 1), 300), bytes_up_to(all, 299))
      << "half a record is none";
  std::string damaged = all;
  damaged[bytes_up_to(all, 120) + 20] ^= 1;
  EXPECT_EQ(bytes_up_to(damaged, 300), bytes_up_to(all, 120));

  const EventFolder second(events, 200);
  EXPECT_TRUE(second.had_events());
  ASSERT_EQ(files_in(events).size(), 2U);
  EXPECT_EQ(read_file(before, "events"), all.substr(0, bytes_up_to(all, 200)));
  EXPECT_NE(bytes_up_to(all, 200), bytes_up_to(all, 199));

  const EventFolder anew(events, std::nullopt);  // of another run in the same place
  EXPECT_FALSE(anew.had_events());
  EXPECT_EQ(files_in(events).size(), 1U);
}

TEST(Events, TagsAreWhatPeopleLookFor) {
  StepRecord step{.step = 3, .loss = 0.5, .ms = 10, .exchange_ms = 2};
  const auto tags = [](const Scalars& scalars) {
    std::string all;
    for (const auto& [tag, value] : scalars) all += tag + " ";
    return all;
  };
  EXPECT_NE(tags(scalars_of(step)).find("train/loss train/lr "), std::string::npos);
  EXPECT_EQ(tags(scalars_of(step)).find("forward"), std::string::npos) << "not known";
  step.forward_ms = 4;
  EXPECT_NE(tags(scalars_of(step)).find("time/forward_ms"), std::string::npos);
  EvalRecord eval;
  eval.split = std::string("validation");
  eval.measures["accuracy"] = 0.5;
  EXPECT_EQ(tags(scalars_of(eval)), "validation/loss validation/accuracy ");
}

// The factors of nccl-tests' PERFORMANCE.md.
TEST(Bandwidth, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 2), 1);
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 8), 1.75);
  for (const char* name : {"all_gather", "reduce_scatter", "gather", "scatter"})
    EXPECT_DOUBLE_EQ(bus_factor(name, 4), 0.75) << name;
  for (const char* name : {"broadcast", "reduce", "send", "receive"})
    EXPECT_DOUBLE_EQ(bus_factor(name, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 1), 0);
  EXPECT_TRUE(std::isnan(bus_factor("all-reduce", 4)));
  // 100 MB in 10 ms over four ranks: 10 GB/s, and every link carries 15 GB/s.
  const Collective sum{.name = "all_reduce", .calls = 3, .bytes = 1e8, .seconds = 0.01};
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(sum), 1e10);
  EXPECT_DOUBLE_EQ(bus_bandwidth(sum, 4), 1.5e10);
  EXPECT_TRUE(std::isnan(algorithm_bandwidth({.name = "all_reduce", .bytes = 5})));
}

}  // namespace
}  // namespace syncopate::record
