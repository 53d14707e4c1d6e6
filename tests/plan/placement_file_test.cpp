#include "syncopate/plan/placement_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/network/topology.h"
#include "syncopate/plan/plan.h"
#include "tests/support/support.h"

namespace syncopate::plan {
namespace {

using Json = nlohmann::ordered_json;

class PlacementFiles : public ::testing::Test {
 protected:
  /// Two stages of two replicas on four of the devices of three hosts.
  static Json sample() {
    return {{"format", "syncopate-placement-1"},
            {"network", "home"},
            {"cluster", nullptr},
            {"scale", 10},
            {"stages", {{4, 0}, {1, 3}}},
            {"schedule", "gpipe"},
            {"micro_batches", 4},
            {"global_batch", 32},
            {"cut", {3, 1}},
            {"bits", {{"gradient", 8}, {"forward", 4}, {"backward", 8}}},
            {"hosts",
             {{{"name", "a"}, {"devices", 2}},
              {{"name", "b"}, {"devices", 1}},
              {{"name", "c"}, {"devices", 2}}}}};
  }

  PlacementFile read(const Json& json) const {
    test::write_text(folder_ / "p.json", json.dump());
    return read_placement(folder_ / "p.json");
  }

  spec::RunSpec take(const Json& json, const std::vector<std::string>& assignments = {}) const {
    spec::RunSpec spec;
    std::vector<std::string> given;
    for (const std::string& each : assignments) given.push_back(spec.fields().set_assignment(each).name);
    take_placement(read(json), spec, given);
    return spec;
  }

  template <typename Failure>
  void refuses(const Json& json, const std::string& words, const std::vector<std::string>& given = {}) const {
    try {
      take(json, given);
      ADD_FAILURE() << json.dump() << " was taken";
    } catch (const Failure& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  const test::TempDir folder_;
};

TEST_F(PlacementFiles, SayStagesRanksMicroBatchesAndBits) {
  const spec::RunSpec spec = take(sample());
  EXPECT_EQ(spec.comm.workers, 4);
  EXPECT_EQ(spec.pipeline.stages, 2);
  // Devices 0, 1, 3 and 4 are ranks 0 to 3.
  EXPECT_EQ(spec.layout(), (std::vector<std::vector<int>>{{3, 0}, {1, 2}}));
  EXPECT_EQ(spec.micro_batches(), 4);
  EXPECT_EQ(spec.pipeline.cut, "3,1");
  EXPECT_EQ(spec.pipeline.schedule, "gpipe");
  EXPECT_EQ(spec.activation.codec, "ac-sgd");
  EXPECT_EQ(spec.activation.forward_bits, 4);
  EXPECT_EQ(spec.activation.backward_bits, 8);
  EXPECT_EQ(spec.codec.name, "int8");
  EXPECT_EQ(spec.examples_per_step(), 32);
  EXPECT_EQ(spec.network.name, "") << "nobody knows where its links are";
  spec.validate();

  Json whole = sample();
  whole["bits"] = {{"gradient", 32}, {"forward", 32}, {"backward", 32}};
  spec::RunSpec fp32 = take(whole), coded = spec;
  EXPECT_EQ(fp32.activation.codec, "none");
  EXPECT_EQ(fp32.codec.name, "none");
  EXPECT_NE(fp32.fields().hash(), coded.fields().hash()) << "what a placement says is part of the run";
  whole["bits"] = {{"gradient", 4}, {"forward", 16}, {"backward", 16}};
  EXPECT_EQ(take(whole).activation.codec, "fp16");
  EXPECT_EQ(take(whole).codec.name, "int4");
}

TEST_F(PlacementFiles, ReplicasOfAWholeModelAccumulate) {
  Json json = sample();
  json["stages"] = {{0, 2, 3}};
  json["cut"] = {4};
  json["global_batch"] = 24;
  const spec::RunSpec spec = take(json);
  EXPECT_EQ(spec.comm.workers, 3);
  EXPECT_EQ(spec.pipeline.stages, 1);
  EXPECT_EQ(spec.train.accumulate, 4);
  EXPECT_EQ(spec.pipeline.layout, "");
  EXPECT_EQ(spec.activation.codec, "none");
  spec.validate();
}

TEST_F(PlacementFiles, FlagsMaySayTheSameAndNothingElse) {
  const spec::RunSpec same =
      take(sample(), {"comm.workers=4", "pipeline.stages=2", "codec.name=int8", "activation.forward_bits=4"});
  EXPECT_EQ(same.comm.workers, 4);
  refuses<ConfigError>(sample(), "--workers 8 contradicts the placement", {"comm.workers=8"});
  refuses<ConfigError>(sample(), "--stages 4 contradicts", {"pipeline.stages=4"});
  refuses<ConfigError>(sample(), "pipeline.micro_batches 2 contradicts", {"pipeline.micro_batches=2"});
  refuses<ConfigError>(sample(), "pipeline.cut 2,2 contradicts", {"pipeline.cut=2,2"});
  refuses<ConfigError>(sample(), "--codec none contradicts", {"codec.name=none"});
  refuses<ConfigError>(sample(), "--activation-codec none contradicts", {"activation.codec=none"});
  refuses<ConfigError>(sample(), "activation.forward_bits 2 contradicts", {"activation.forward_bits=2"});
  // Of codecs of as many bits either will do, and batch and schedule are the user's.
  EXPECT_EQ(take(sample(), {"activation.codec=direct"}).activation.codec, "direct");
  EXPECT_EQ(take(sample(), {"pipeline.schedule=1f1b"}).pipeline.schedule, "1f1b");
  EXPECT_EQ(take(sample(), {"train.batch_size=8"}).examples_per_step(), 16);
  EXPECT_EQ(take(sample(), {"train.global_batch=64"}).examples_per_step(), 64);
}

TEST_F(PlacementFiles, ExamplesThatAreDrawnAnewAreQuantisedDirectly) {
  EXPECT_EQ(take(sample(), {"task.name=mlm"}).activation.codec, "direct");
  EXPECT_EQ(take(sample(), {"task.name=sst2"}).activation.codec, "ac-sgd");
}

TEST_F(PlacementFiles, RanksSitOnTheDevicesInUse) {
  test::write_text(folder_ / "home.toml", R"(
[[host]]
name = "a"
devices = 2
[[host]]
name = "b"
[[host]]
name = "c"
devices = 2
[[link]]
between = ["a", "b"]
latency_ms = 1
gbit = 1
[[link]]
between = ["a", "c"]
latency_ms = 1
gbit = 1
[[link]]
between = ["b", "c"]
latency_ms = 1
gbit = 1
)");
  Json json = sample();
  json["cluster"] = (folder_ / "home.toml").string();
  json["stages"] = {{4, 0}, {2, 3}};
  const spec::RunSpec spec = take(json);
  EXPECT_EQ(spec.network.scale, 10);
  EXPECT_EQ(spec.network.hosts, "a:1,b,c");
  const network::Topology home = network::load(spec.network.name);
  EXPECT_EQ(network::seats(home, spec.network.hosts, 4), (std::vector<int>{0, 1, 2, 2}));
  EXPECT_NE(network::seats(home, "a,b,c", 4), (std::vector<int>{0, 1, 2, 2})) << "by turns";
  refuses<ConfigError>(json, "--scale 1 contradicts", {"network.scale=1"});
  refuses<ConfigError>(json, "network two-sites has other hosts", {"network.name=two-sites"});
  // A file that lies beside the placement, and one that is gone.
  json["cluster"] = "elsewhere/home.toml";
  EXPECT_EQ(take(json).network.name, (folder_ / "home.toml").string());
  json["cluster"] = "elsewhere/away.toml";
  refuses<ConfigError>(json, "is for the cluster file elsewhere/away.toml, which is not there");
  EXPECT_EQ(take(json, {"network.name=" + (folder_ / "home.toml").string()}).network.hosts, "a:1,b,c");
  EXPECT_THROW(network::seats(home, "a:3", 1), ConfigError);
}

TEST_F(PlacementFiles, RefusesWhatIsNone) {
  const auto with = [](const char* key, const Json& value) {
    Json json = sample();
    json[key] = value;
    return json;
  };
  const auto refused = [&](const Json& json, const std::string& words) { refuses<DataError>(json, words); };
  refused(Json("text"), "is no placement");
  refused(with("format", "syncopate-placement-2"), "is no placement");
  refused(with("stages", {{0, 1}, {1, 3}}), "device 1 has two places");
  refused(with("stages", {{0, 1}, {5, 3}}), "there is no device 5");
  refused(with("stages", {{0, 1}, {3}}), "not as many each");
  refused(with("stages", Json::array()), "stages must be a list");
  refused(with("stages", {{0, 1.5}}), "a device must be a whole number");
  refused(with("micro_batches", 0), "micro_batches must be a whole number from 1");
  refused(with("cut", {3}), "cut must have a number for each stage");
  refused(with("bits", {{"gradient", 8}, {"forward", 4}, {"backward", 32}}), "1 to 8 of each");
  refused(with("bits", {{"gradient", 7}, {"forward", 4}, {"backward", 8}}), "no codec has 7 bits");
  refused(with("bits", {{"gradient", 8}, {"forward", {{4, 8}}}, {"backward", 8}}), "a number of bits");
  refused(with("scale", 0), "scale must be above 0");
  test::write_text(folder_ / "torn.json", sample().dump().substr(0, 100));
  EXPECT_THROW(read_placement(folder_ / "torn.json"), DataError);
  EXPECT_THROW(read_placement(folder_ / "none.json"), DataError);
}

TEST_F(PlacementFiles, ComeFromPlans) {
  sim::Profile profile{.model = std::string("m"), .optimizer = std::string("adamw")};
  profile.times = {{.batch = 1, .forward_s = 0.1, .backward_s = 0.2, .update_s = 0.01}};
  profile.parameters = {{.name = "w", .shape = {400, 100}}};
  for (int i = 0; i < 4; ++i)
    profile.layers.push_back({.name = "l", .share = 0.25, .parameters = 10000, .output_bytes = 1e6});
  Request request{.topology = network::load("worldwide").scaled(100),
                  .cluster = std::string("worldwide"),
                  .scale = 100,
                  .job = job_from_profile(profile, 64)};
  request.stages = 4;
  request.replicas = 2;
  request.codings = codings(profile, 4, 8, 8);
  request.effort.share = 0.01;
  const spec::RunSpec spec = take(to_json(make_plan(request)));
  spec.validate();
  EXPECT_EQ(spec.comm.workers, 8);
  EXPECT_EQ(spec.pipeline.cut, "1,1,1,1");
  EXPECT_EQ(spec.activation.forward_bits, 4);
  EXPECT_EQ(spec.network.name, "worldwide");
  EXPECT_EQ(spec.examples_per_step(), 64);
  const std::vector<int> seats = network::seats(network::load("worldwide"), spec.network.hosts, 8);
  EXPECT_TRUE(std::is_sorted(seats.begin(), seats.end()));
  EXPECT_EQ(std::set<int>(seats.begin(), seats.end()).size(), 8u);
}

}  // namespace
}  // namespace syncopate::plan
