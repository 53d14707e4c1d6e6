#include "syncopate/sim/profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "tests/support/support.h"

namespace syncopate::sim {
namespace {

Profile sample() {
  Profile profile;
  profile.task = std::string("supersense");
  profile.workers = 2;
  profile.cores = 4;
  profile.times = {
      {.batch = 8, .forward_s = 0.1, .backward_s = 0.2, .update_s = 0.05, .peak_memory = 100},
      {.batch = 16, .forward_s = 0.18, .backward_s = 0.36, .update_s = 0.05, .peak_memory = 140}};
  profile.parameters = {{.name = "a", .shape = {3, 4}, .ready = 0.25},
                        {.name = "b", .shape = {5}, .rows = 2, .layer = 0}};
  profile.layers = {{.name = "body", .share = 1, .parameters = 17, .output_bytes = 8, .channels = 2}};
  profile.real_share = 0.5;
  profile.codecs = {{.name = "int8", .encode_s = 1e-9, .decode_s = 2e-9}};
  profile.local = {.operation_s = 1e-4, .loopback_gbyte = 1, .reduce_gbyte = 4, .copy_gbyte = 8};
  return profile;
}

TEST(Profile, ComesBackFromJson) {
  const Profile profile = sample(), again = profile_from_json(to_json(profile));
  EXPECT_EQ(to_json(again).dump(), to_json(profile).dump());
  EXPECT_TRUE(std::isnan(again.parameters[1].ready));
  EXPECT_EQ(again.elements(), 17);
  Profile other = profile;
  other.times[0].forward_s = 1;
  EXPECT_NE(to_json(other).dump(), to_json(profile).dump());
}

TEST(Profile, IsALineBetweenAndBeyondItsBatches) {
  const Profile profile = sample();
  EXPECT_NEAR(profile.at(12).forward_s, 0.14, 1e-12);
  EXPECT_NEAR(profile.at(32).backward_s, 0.68, 1e-12);
  EXPECT_EQ(profile.at(32).update_s, 0.05);
  EXPECT_NEAR(profile.at(4).forward_s, 0.06, 1e-12);
  EXPECT_EQ(profile.at(16).peak_memory, 140);
  Profile one = profile;
  one.times.resize(1);
  EXPECT_NEAR(one.at(4).forward_s, 0.05, 1e-12);
}

TEST(Profile, RefusesWhatIsNone) {
  const test::TempDir folder;
  const auto file = folder / "profile.json";
  const auto refused = [&](const std::string& text) {
    std::ofstream(file) << text;
    EXPECT_THROW(read_profile(file), DataError) << text;
  };
  refused("{");
  refused("{}");
  refused(R"({"format": "syncopate-profile-1"})");
  nlohmann::ordered_json json = to_json(sample());
  json["times"][0]["forward_s"] = -1;
  refused(json.dump());
  json = to_json(sample());
  json["times"] = nlohmann::ordered_json::array();
  refused(json.dump());
  json = to_json(sample());
  json["times"][1]["batch"] = 8;
  refused(json.dump());
}

}  // namespace
}  // namespace syncopate::sim
