// What a trace of a few steps shows is what the schedule says.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/run/records/trace_file.h"
#include "tests/contract/ranks.h"
#include "tests/laws/family_rig.h"
#include "tests/support/support.h"
#include "tests/support/tasks.h"

namespace syncopate::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kTracedMicroBatches = 3;

/// A slice of the picture, in microseconds.
struct Slice {
  int rank = 0;
  std::string name, lane;
  double begin = 0, end = 0;
  int64_t step = 0, micro = -1;
};

class Tracing : public testing::Test {
 protected:
  spec::RunSpec small() const {
    spec::RunSpec spec = small_spec("csv", small_table(folder_ / "table"));
    spec.train.steps = 5;
    return spec;
  }

  static spec::RunSpec staged(spec::RunSpec spec, int stages, int replicas, const std::string& schedule) {
    spec.pipeline.stages = stages;
    spec.pipeline.schedule = schedule;
    spec.pipeline.micro_batches = kTracedMicroBatches;
    spec.comm.workers = stages * replicas;
    spec.strategy.name = replicas == 1 ? "single" : "ddp";
    return spec;
  }

  /// The file of such a run.
  static Json file_of(const spec::RunSpec& spec, FamilyTrace* trained = nullptr) {
    const auto workers = static_cast<size_t>(spec.comm.workers);
    std::vector<std::unique_ptr<parallel::Trace>> traces;
    FamilyRun run{.spec = spec};
    for (size_t rank = 0; rank < workers; ++rank) {
      traces.push_back(std::make_unique<parallel::Trace>());
      run.traces.push_back(traces.back().get());
    }
    const FamilyTrace result = train(run);
    if (trained != nullptr) *trained = result;
    std::vector<run::RankTrace> ranks;
    for (size_t rank = 0; rank < workers; ++rank) {
      run::RankTrace mine{.rank = static_cast<int>(rank),
                          .events = traces[rank]->events(),
                          .messages = traces[rank]->messages()};
      const auto layout = spec.layout();
      for (size_t stage = 0; spec.pipeline.stages > 1 && stage < layout.size(); ++stage) {
        const auto found = std::find(layout[stage].begin(), layout[stage].end(), mine.rank);
        if (found == layout[stage].end()) continue;
        mine.stage = static_cast<int>(stage);
        mine.replica = static_cast<int>(found - layout[stage].begin());
        for (const auto& other : layout) mine.stage_ranks.push_back(other[static_cast<size_t>(mine.replica)]);
      }
      ranks.push_back(std::move(mine));
    }
    return Json::parse(run::trace_json(ranks, "syncopate train"));
  }

  static std::vector<Slice> slices_of(const Json& file) {
    std::vector<Slice> slices;
    for (const Json& event : file.at("traceEvents")) {
      if (event.at("ph") != "X") continue;
      slices.push_back({.rank = event.at("pid"),
                        .name = event.at("name").get<std::string>(),
                        .lane = event.at("cat").get<std::string>(),
                        .begin = event.at("ts"),
                        .end = event.at("ts").get<double>() + event.at("dur").get<double>(),
                        .step = event.at("args").at("step"),
                        .micro = event.at("args").value("micro_batch", int64_t{-1})});
      EXPECT_GE(event.at("dur").get<double>(), 0) << event;
    }
    return slices;
  }

  /// The passes that a rank made in a step, in order: "f0 f1 b0".
  static std::string passes_of(const std::vector<Slice>& slices, int rank, int64_t step) {
    std::vector<Slice> passes;
    for (const Slice& slice : slices) {
      if (slice.rank == rank && slice.step == step &&
          (slice.name.starts_with("forward ") || slice.name.starts_with("backward ")))
        passes.push_back(slice);
    }
    std::sort(passes.begin(), passes.end(), [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    std::string order;
    for (const Slice& pass : passes)
      order += (order.empty() ? "" : " ") + pass.name.substr(0, 1) + std::to_string(pass.micro);
    return order;
  }

  static const Slice& find(const std::vector<Slice>& slices, int rank, const std::string& name,
                           int64_t step) {
    const auto found = std::find_if(slices.begin(), slices.end(), [&](const Slice& slice) {
      return slice.rank == rank && slice.name == name && slice.step == step;
    });
    if (found == slices.end()) throw DataError("no {} of rank {} in step {}", name, rank, step);
    return *found;
  }

  TempDir folder_;
};

TEST_F(Tracing, ShowsPassesAsTheScheduleHasThem) {
  const Json file = file_of(staged(small(), 2, 1, "1f1b"));
  const std::vector<Slice> slices = slices_of(file);
  for (int rank = 0; rank < 2; ++rank) {
    for (const Slice& slice : slices) {
      if (slice.rank != rank || slice.lane != "compute") continue;
      const Slice& step = find(slices, rank, "step " + std::to_string(slice.step), slice.step);
      EXPECT_LE(step.begin, slice.begin) << slice.name;
      EXPECT_GE(step.end, slice.end) << slice.name;
      EXPECT_TRUE(slice.step >= 3 && slice.step <= 5) << slice.step;
    }
  }
  constexpr double kRounding = 0.01;
  for (int64_t step = 3; step <= 5; ++step) {
    EXPECT_EQ(passes_of(slices, 0, step), "f0 f1 b0 f2 b1 b2");
    EXPECT_EQ(passes_of(slices, 1, step), "f0 b0 f1 b1 f2 b2");
    for (int64_t micro = 0; micro < kTracedMicroBatches; ++micro) {
      const std::string number = std::to_string(micro);
      EXPECT_GE(find(slices, 1, "forward " + number, step).begin + kRounding,
                find(slices, 0, "forward " + number, step).end);
      EXPECT_GE(find(slices, 0, "backward " + number, step).begin + kRounding,
                find(slices, 1, "backward " + number, step).end);
      const Slice& sent = find(slices, 0, "send " + number + " to rank 1", step);
      const Slice& received = find(slices, 1, "receive " + number + " from rank 0", step);
      EXPECT_EQ(sent.lane, "transfers forwards");
      EXPECT_EQ(sent.begin, received.begin);
      EXPECT_GE(sent.begin + kRounding, find(slices, 0, "pack activations " + number, step).end);
      EXPECT_LE(received.end, find(slices, 1, "unpack activations " + number, step).begin + kRounding);
      EXPECT_EQ(find(slices, 1, "send " + number + " to rank 0", step).lane, "transfers backwards");
    }
  }
  // The foil.
  const std::vector<Slice> other = slices_of(file_of(staged(small(), 2, 1, "gpipe")));
  EXPECT_EQ(passes_of(other, 0, 3), "f0 f1 f2 b0 b1 b2");
  EXPECT_EQ(passes_of(other, 1, 3), "f0 f1 f2 b0 b1 b2");
}

TEST_F(Tracing, NamesRanksAndKeepsRowsApart) {
  const Json file = file_of(staged(small(), 2, 2, "1f1b"));
  std::vector<std::string> names;
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> rows;
  int64_t starts = 0, ends = 0, buckets = 0;
  for (const Json& event : file.at("traceEvents")) {
    if (event.at("name") == "process_name") names.push_back(event.at("args").at("name"));
    if (event.at("ph") == "s") ++starts;
    if (event.at("ph") == "f") ++ends;
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts");
    rows[{event.at("pid"), event.at("tid")}].emplace_back(begin, begin + event.at("dur").get<double>());
    if (event.at("name").get<std::string>().starts_with("bucket ")) {
      ++buckets;
      EXPECT_GT(event.at("args").at("bytes").get<double>(), 0);
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"rank 0: stage 0, replica 0", "rank 1: stage 1, replica 0",
                                             "rank 2: stage 0, replica 1", "rank 3: stage 1, replica 1"}));
  EXPECT_GE(buckets, 4 * 3) << "of every rank in every step";
  EXPECT_EQ(starts, 2 * 2 * kTracedMicroBatches * 3) << "an arrow for each message";
  EXPECT_EQ(starts, ends);
  for (auto& [place, spans] : rows) {
    std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
      return a.first < b.first || (a.first == b.first && a.second > b.second);
    });
    for (size_t i = 1; i < spans.size(); ++i) {
      // In a row things come one after the other, or one is a part of the other.
      bool apart = true;
      for (size_t k = 0; k < i; ++k)
        apart =
            apart && (spans[k].second <= spans[i].first + 0.01 || spans[k].second + 0.01 >= spans[i].second);
      EXPECT_TRUE(apart) << "rank " << place.first << ", row " << place.second;
    }
  }
}

TEST_F(Tracing, WorksWithoutStagesAndChangesNothing) {
  FamilyTrace traced;
  spec::RunSpec spec = with_workers(small(), 2, "ddp").spec;
  spec.train.accumulate = 2;
  const std::vector<Slice> slices = slices_of(file_of(spec, &traced));
  EXPECT_EQ(passes_of(slices, 1, 4), "f0 b0 f1 b1");
  EXPECT_LE(find(slices, 0, "backward 1", 3).end, find(slices, 0, "update", 3).begin);
  EXPECT_EQ(find(slices, 0, "bucket 1", 5).lane, "exchange");
  EXPECT_EQ(traced.losses, train({.spec = spec}).losses);
  spec.train.seed += 1;
  EXPECT_NE(traced.losses, train({.spec = spec}).losses);
}

TEST(TraceClocks, OfOtherMachinesAreAligned) {
  // Rank 1 is on another machine whose clock is far ahead, and drifts.
  std::vector<run::ClockReading> readings(2);
  const auto clock_of = [](int rank) {
    const parallel::Trace real;
    const double now = real.now();
    return rank == 0 ? now : 1000 + 1.001 * now;
  };
  const auto read = [&] {
    run_ranks(2, [&](comm::Group& group) {
      readings[static_cast<size_t>(group.rank())] = run::compare_clocks(
          group, "machine " + std::to_string(group.rank()), [&] { return clock_of(group.rank()); });
    });
    return readings[1];
  };
  run::RankTrace far{.rank = 1};
  far.before = read();
  far.after = read();
  EXPECT_EQ(readings[0].within, 0);
  EXPECT_GT(far.before.within, 0);
  const double now = clock_of(0), theirs = clock_of(1);
  EXPECT_GT(std::abs(theirs - now), 500) << "the foil: as it is";
  EXPECT_NEAR(far.to_common(theirs), now, 0.1);
  // On one machine there is one clock, whatever it says.
  run_ranks(2, [&](comm::Group& group) {
    const run::ClockReading here =
        run::compare_clocks(group, "one machine", [&] { return clock_of(group.rank()); });
    EXPECT_EQ(here.ahead, 0);
  });
}

TEST(TraceClocks, GathersWhatRanksSay) {
  run_ranks(3, [&](comm::Group& group) {
    run::RankTrace mine{.rank = group.rank(), .stage = group.rank(), .stage_ranks = {0, 1, 2}};
    mine.events = {{.lane = parallel::Trace::Lane::kExchange,
                    .name = std::string("bucket 1"),
                    .begin = 0.1 + group.rank(),
                    .end = 7,
                    .step = 4,
                    .micro = 2,
                    .bytes = 12}};
    mine.messages = {
        {.lane = parallel::Trace::Lane::kBackward, .sent = true, .peer = 1, .step = 4, .micro = 1}};
    const auto all = run::gather_traces(group, mine);
    ASSERT_EQ(all.size(), group.rank() == 0 ? 3u : 0u);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      EXPECT_EQ(all[rank].rank, static_cast<int>(rank));
      EXPECT_EQ(all[rank].events.at(0).begin, 0.1 + static_cast<double>(rank));
      EXPECT_EQ(all[rank].events.at(0).name, "bucket 1");
      EXPECT_EQ(all[rank].messages.at(0).lane, parallel::Trace::Lane::kBackward);
      EXPECT_TRUE(all[rank].messages.at(0).sent);
    }
  });
}

TEST(TraceFile, NeedsAPlace) {
  const TempDir folder;
  EXPECT_NO_THROW(run::require_trace_place(folder / "trace.json"));
  EXPECT_NO_THROW(run::require_trace_place("trace.json"));
  EXPECT_THROW(run::require_trace_place(folder / "missing" / "trace.json"), ConfigError);
  EXPECT_THROW(run::require_trace_place(folder / "."), ConfigError);
}

}  // namespace
}  // namespace syncopate::test
