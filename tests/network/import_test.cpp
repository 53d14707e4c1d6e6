#include "syncopate/network/import.h"

#include <gtest/gtest.h>

#include <fstream>

#include "syncopate/base/error.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

using network::import_csv;
using network::ImportOptions;
using network::Topology;

std::string complaint(const ImportOptions& options) {
  try {
    import_csv(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class Import : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  TempDir folder_;
};

TEST_F(Import, PairsOfRegions) {
  const auto path =
      file("pairs.csv",
           "region_a,region_b,delay_ms,bandwidth_gbps\nOregon,Ohio,49,1.1\nOregon,Tokyo,96,0.523\n"
           "Ohio,Tokyo,130,0.694\n");
  const Topology three = import_csv({.files = {path}});
  EXPECT_EQ(three.regions(), (std::vector<std::string>{"Oregon", "Ohio", "Tokyo"}));
  EXPECT_EQ(three.link(2, 1).gbit, 0.694);
  EXPECT_EQ(three.link(2, 1).latency_ms, 130) << "given one way";
  const Topology six = import_csv(
      {.files = {path}, .regions = {"Tokyo", "Ohio"}, .hosts_per_region = 3, .inside = network::Link{5, 2}});
  EXPECT_EQ(six.size(), 6);
  EXPECT_EQ(six.hosts()[0].name, "Tokyo-0");
  EXPECT_EQ(six.link(0, 1).gbit, 2);
  EXPECT_NE(complaint({.files = {path}, .hosts_per_region = 2}).find("--inside"), std::string::npos);
  EXPECT_NE(complaint({.files = {path}, .regions = {"Tokio"}}).find("did you mean \"Tokyo\"?"),
            std::string::npos);
  const auto holed = file("holed.csv", "region_a,region_b,delay_ms,bandwidth_gbps\nA,B,1,1\nB,C,1,1\n");
  EXPECT_NE(complaint({.files = {holed}}).find("from A to C"), std::string::npos);
  const auto zero = file("zero.csv", "region_a,region_b,delay_ms,bandwidth_gbps\nA,B,1,0\n");
  EXPECT_NE(complaint({.files = {zero}}).find("zero.csv:2"), std::string::npos);
}

TEST_F(Import, CloudMeasurements) {
  const auto latency = file("latency.csv",
                            "src_region,src_tier,dst_region,dst_tier,avg_rtt\n"
                            "aws:us-east-1,PREMIUM,gcp:europe-west4-a,PREMIUM,90\n"
                            "aws:us-east-1,PREMIUM,gcp:europe-west4-a,STANDARD,110\n");
  const auto rates = file("throughput.csv",
                          "src_region,src_tier,dst_region,dst_tier,throughput_received,success\n"
                          "aws:us-east-1,PREMIUM,gcp:europe-west4-a,STANDARD,1e9,True\n"
                          "aws:us-east-1,PREMIUM,gcp:europe-west4-a,PREMIUM,4e9,True\n"
                          "aws:us-east-1,PREMIUM,gcp:europe-west4-a,PREMIUM,9e9,False\n"
                          "gcp:europe-west4-a,PREMIUM,aws:us-east-1,PREMIUM,3e9,True\n");
  const Topology two =
      import_csv({.files = {latency, rates}, .regions = {"europe-west4-a", "aws:us-east-1"}});
  EXPECT_EQ(two.hosts()[1].name, "us-east-1-0");
  EXPECT_EQ(two.link(1, 0), (network::Link{.latency_ms = 45, .gbit = 4}));
  EXPECT_EQ(two.link(0, 1), (network::Link{.latency_ms = 45, .gbit = 3})) << "measured there and back";
  EXPECT_NE(complaint({.files = {rates}}).find("latency"), std::string::npos);
  EXPECT_NE(complaint({.files = {latency}}).find("bandwidth"), std::string::npos);
}

TEST_F(Import, Matrices) {
  const auto latency = file("l.csv", "latency_ms,A,B\nA,0,7\nB,8,0\n");
  const auto gbit = file("g.csv", "gbit,B,A\nA,2,0\nB,0,3\n");
  const Topology two = import_csv({.files = {latency, gbit}});
  EXPECT_EQ(two.link(0, 1), (network::Link{.latency_ms = 7, .gbit = 2}));
  EXPECT_EQ(two.link(1, 0), (network::Link{.latency_ms = 8, .gbit = 3}));
  const auto wide = file("wide.csv", "gbit,A,B,C\nA,0,1,1\nB,1,0,1\n");
  EXPECT_NE(complaint({.files = {latency, wide}}).find("not square: it has 2 rows and 3 columns"),
            std::string::npos);
  const auto other = file("other.csv", "gbit,A,C\nA,0,1\nB,1,0\n");
  EXPECT_NE(complaint({.files = {latency, other}}).find("B has a row and no column"), std::string::npos);
  const auto unknown = file("unknown.csv", "a,b\n1,2\n");
  EXPECT_NE(complaint({.files = {unknown}}).find("a, b"), std::string::npos);
}

TEST(ImportShared, PublishedMeasurementsAreRead) {
  const auto found = shared("data/network");
  if (!found) GTEST_SKIP() << "needs the shared data";
  const auto& folder = *found;
  const Topology ten = import_csv({.files = {folder / "dtfm_aws_10regions.csv"}});
  EXPECT_EQ(ten.size(), 10);
  const Topology clouds =
      import_csv({.files = {folder / "skyplane_latency.csv", folder / "skyplane_throughput.csv"},
                  .regions = {"aws:us-east-1", "azure:westeurope", "gcp:asia-northeast1-a"}});
  EXPECT_EQ(clouds.size(), 3);
  EXPECT_GT(clouds.link(0, 2).latency_ms, clouds.link(0, 1).latency_ms) << "Tokyo is further than Europe";
}

}  // namespace
}  // namespace syncopate::test
