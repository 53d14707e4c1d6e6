#include "syncopate/train/checkpoint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "syncopate/base/error.h"
#include "syncopate/parallel/make.h"
#include "syncopate/tensor/safetensors.h"
#include "syncopate/train/replica_parts.h"
#include "tests/contract/ranks.h"
#include "tests/parallel/small_replica.h"
#include "tests/support/support.h"

namespace syncopate::train {
namespace {

Checkpoint some_checkpoint() {
  return {
      {{"parameters", at::arange(1000, at::kFloat)}, {"optimizer.exp_avg", at::arange(64, at::kFloat) * 0.5}},
      {{"steps_done", 12}, {"epoch_loss", 0.1 + 0.2}}};
}

std::map<std::string, at::Tensor> tensors_in(const std::filesystem::path& path) {
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, tensor] : load_checkpoint(path).tensors) found[name] = tensor;
  return found;
}

TEST(Checkpoint, RoundTripsBitForBit) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  save_checkpoint(path, some_checkpoint());
  const Checkpoint back = load_checkpoint(path);
  const auto saved = tensors_in(path);
  EXPECT_EQ(saved.size(), 2u);
  EXPECT_TRUE(at::equal(saved.at("parameters"), at::arange(1000, at::kFloat)));
  EXPECT_TRUE(at::equal(saved.at("optimizer.exp_avg"), at::arange(64, at::kFloat) * 0.5));
  EXPECT_EQ(back.state.at("epoch_loss").get<double>(), 0.1 + 0.2);
}

/// What load_checkpoint says of the file; empty: it takes it.
std::string complaint_about(const std::filesystem::path& path) {
  try {
    load_checkpoint(path);
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

/// The same of `bytes`, in a new file: some file systems flush one that is overwritten.
std::string complaint_about(const std::string& bytes, const std::filesystem::path& path) {
  std::filesystem::remove(path);
  test::write_text(path, bytes);
  return complaint_about(path);
}

/// As small as one can be that has several tensors, types and shapes, one of them without a byte.
std::string small_checkpoint(const std::filesystem::path& path) {
  save_checkpoint(path, {{{"b", at::arange(6, at::kFloat).reshape({2, 3})},
                          {"a", at::arange(3, at::kLong)},
                          {"empty", at::zeros({0}, at::kFloat)}},
                         {{"steps_done", 12}, {"note", "\"checksum\":\"0\""}}});
  return test::read_text(path);
}

TEST(Checkpoint, RefusesAnyByteChanged) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  const std::string whole = small_checkpoint(path);
  ASSERT_LT(whole.size(), 1000u);
  ASSERT_EQ(complaint_about(whole, path), "") << "the foil: these very bytes, unchanged";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](size_t at, char value) {
    file.seekp(static_cast<std::streamoff>(at)).put(value).flush();
    ASSERT_TRUE(file.good());
  };
  size_t tried = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string values = "\t0\"\xFF";  // white space, digits and quotes may leave the header sound
    for (int bit = 0; bit < 8; ++bit) values += static_cast<char>(whole[at] ^ (1 << bit));
    for (const char value : values) {
      if (value == whole[at]) continue;
      put(at, value);
      const std::string said = complaint_about(path);
      EXPECT_TRUE(said.find("is damaged (") != std::string::npos ||
                  said.find("has the format syncopate-checkpoint-") != std::string::npos)
          << "byte " << at << " from " << int{whole[at]} << " to " << int{value} << ": " << said;
      ++tried;
    }
    put(at, whole[at]);
  }
  EXPECT_GE(tried, 11 * whole.size());
  EXPECT_EQ(complaint_about(path), "") << "every byte stands as it did";
}

TEST(Checkpoint, RefusesAFileCutOrExtendedAnywhere) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  const std::string whole = small_checkpoint(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(complaint_about(whole.substr(0, size), path).find("is damaged ("), std::string::npos) << size;
    const std::string without = whole.substr(0, size) + whole.substr(size + 1);
    EXPECT_NE(complaint_about(without, path).find("is damaged ("), std::string::npos) << size;
  }
  for (size_t at = 0; at <= whole.size(); ++at) {
    const std::string with = whole.substr(0, at) + " " + whole.substr(at);
    EXPECT_NE(complaint_about(with, path).find("is damaged ("), std::string::npos) << at;
  }
  EXPECT_EQ(complaint_about(whole, path), "");
  EXPECT_THROW(load_checkpoint(folder / "nothing"), DataError);
}

TEST(Checkpoint, RefusesChangesThatLeaveASoundSafetensorsFile) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  const std::string whole = small_checkpoint(path);
  const auto expect_refused = [&](const std::string& from, const std::string& to) {
    ASSERT_EQ(from.size(), to.size());
    const size_t at = whole.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::string changed = whole;
    changed.replace(at, from.size(), to);
    const std::string said = complaint_about(changed, path);
    EXPECT_NO_THROW(tensor::SafetensorsFile{path}) << to;
    EXPECT_NE(said.find("its checksum does not match"), std::string::npos) << to << ": " << said;
  };
  expect_refused("\"F32\"", "\"I32\"");                      // a type of the same size
  expect_refused("[2,3]", "[3,2]");                          // a shape of as many elements
  expect_refused("\"b\":", "\"c\":");                        // another name
  expect_refused("steps_done\\\":12", "steps_done\\\":13");  // another state
  expect_refused("\"format\":\"syncopate-checkpoint", "\"format\":\"syncopate-checkpoinT");
  const size_t padding = whole.find("}} ");
  ASSERT_NE(padding, std::string::npos) << "a header of this length is filled up with spaces: " << whole;
  expect_refused("}} ", "}}\n");
}

TEST(Checkpoint, RefusesAnotherFormatByName) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  // The first had a checksum over less than the whole file, the second all parameters in one tensor.
  for (const std::string format : {"syncopate-checkpoint-1", "syncopate-checkpoint-2"}) {
    tensor::write_safetensors(path, {{"parameters", at::ones({4})}},
                              {{"format", format}, {"state", "{}"}, {"checksum", "0"}});
    const std::string said = complaint_about(test::read_text(path), path);
    EXPECT_NE(said.find("has the format " + format +
                        ", but this version of Syncopate reads syncopate-checkpoint-3; finish the run with "
                        "the version that wrote it"),
              std::string::npos)
        << said;
  }
  tensor::write_safetensors(path, {{"parameters", at::ones({4})}}, {{"format", "pt"}});
  EXPECT_NE(complaint_about(test::read_text(path), path).find("it holds no training state"),
            std::string::npos);
}

TEST(Checkpoint, IsASafetensorsFile) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  small_checkpoint(path);
  const tensor::SafetensorsFile file(path);
  EXPECT_TRUE(at::equal(file.read("b"), at::arange(6, at::kFloat).reshape({2, 3})));
  EXPECT_TRUE(at::equal(file.read("a"), at::arange(3, at::kLong)));
  EXPECT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.metadata().at("format"), "syncopate-checkpoint-3");
  EXPECT_EQ(file.metadata().at("checksum").size(), 16u);
  EXPECT_EQ(nlohmann::json::parse(file.metadata().at("state")).at("steps_done"), 12);
}

/// A replica with its strategy and what composes their checkpoint.
struct Parts {
  Parts(comm::Group& group, const std::string& strategy, uint64_t seed,
        const optim::OptimizerOptions& options)
      : small(seed, options),
        made(parallel::make_strategy({.name = strategy}, group)),
        counter(
            "mine",
            [this] {
              return nlohmann::ordered_json{{"count", count}};
            },
            [this](const nlohmann::ordered_json& values, Resumption&) { count = values.at("count"); }),
        replica({.replica = small.replica, .strategy = *made.strategy, .group = group}) {
    made.strategy->start(small.replica);
  }
  std::vector<CheckpointPart*> all() { return replica.and_then(counter); }

  test::SmallReplica small;
  parallel::MadeStrategy made;
  int64_t count = 0;
  ValuesPart counter;
  ReplicaParts replica;
};

TEST(CheckpointParts, TensorsStandUnderParameterNamesWithTheirShapes) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  test::run_ranks(2, [&](comm::Group& group) {
    Parts mine(group, "ddp", 1, {});
    mine.small.set_gradient(1);
    mine.small.apply();
    mine.count = 7;
    save_checkpoint(path, group, mine.all());
    Parts other(group, "ddp", 2, {});
    EXPECT_FALSE(at::equal(other.small.params.values, mine.small.params.values)) << "the foil";
    const Resumption how = restore_checkpoint(path, group, other.all());
    EXPECT_FALSE(how.resized());
    EXPECT_TRUE(how.notes.empty());
    EXPECT_TRUE(at::equal(other.small.params.values, mine.small.params.values));
    for (size_t i = 0; i < mine.small.optimizer->state().size(); ++i) {
      EXPECT_TRUE(
          at::equal(other.small.optimizer->state()[i].tensor, mine.small.optimizer->state()[i].tensor));
    }
    EXPECT_EQ(other.small.optimizer->steps_done(), 1);
    EXPECT_EQ(other.count, 7);
    if (group.rank() > 0) return;
    const auto saved = tensors_in(path);
    EXPECT_EQ(saved.size(), 3 * mine.small.params.entries().size()) << "parameters and two moments";
    for (const auto& [name, tensor] : mine.small.model->parameters()) {
      ASSERT_TRUE(saved.contains("model." + name)) << name;
      EXPECT_TRUE(at::equal(saved.at("model." + name), tensor.detach())) << name;
      for (const std::string moment : {"exp_avg", "exp_avg_sq"}) {
        const std::string full = "optimizer." + moment + "." + name;
        ASSERT_TRUE(saved.contains(full)) << full;
        EXPECT_EQ(saved.at(full).sizes(), tensor.sizes()) << full;
      }
    }
  });
}

TEST(CheckpointParts, HoldTheSettledModelAndEveryRanksOwn) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  std::vector<at::Tensor> values(2);
  test::run_ranks(2, [&](comm::Group& group) {
    Parts mine(group, "local-sgd", 1, {});
    mine.small.set_gradient(group.rank());
    mine.small.step(*mine.made.strategy);
    const at::Tensor before = mine.small.params.values.clone();
    save_checkpoint(path, group, mine.all());
    EXPECT_TRUE(at::equal(mine.small.params.values, before)) << "training goes on with its own";
    values[static_cast<size_t>(group.rank())] = before;
    Parts other(group, "local-sgd", 2, {});
    restore_checkpoint(path, group, other.all());
    EXPECT_TRUE(at::equal(other.small.params.values, before));
  });
  EXPECT_FALSE(at::equal(values[0], values[1])) << "the foil: ranks differ";
  const auto saved = tensors_in(path);
  test::SmallReplica shape(1);
  for (const auto& entry : shape.params.entries()) {
    const auto own = [&](size_t rank) { return values[rank].narrow(0, entry.offset, entry.size); };
    EXPECT_TRUE(at::allclose(saved.at("model." + entry.name).view({-1}), (own(0) + own(1)) / 2, 1e-6, 1e-7));
    EXPECT_TRUE(at::equal(saved.at("rank1.model." + entry.name).view({-1}), own(1)));
    EXPECT_TRUE(saved.contains("rank1.optimizer.exp_avg." + entry.name));
    EXPECT_FALSE(saved.contains("optimizer.exp_avg." + entry.name));
  }
  // One rank alone takes the settled model, and the mean of the moments.
  test::run_ranks(1, [&](comm::Group& group) {
    Parts alone(group, "local-sgd", 3, {});
    const Resumption how = restore_checkpoint(path, group, alone.all());
    EXPECT_TRUE(how.resized());
    EXPECT_EQ(how.ranks_before, 2);
    EXPECT_EQ(how.notes.size(), 2u);
    const auto& entry = alone.small.params.entries().front();
    EXPECT_TRUE(at::equal(alone.small.params.value_of(entry), saved.at("model." + entry.name).view({-1})));
    const at::Tensor mean = (saved.at("rank0.optimizer.exp_avg." + entry.name) +
                             saved.at("rank1.optimizer.exp_avg." + entry.name)) /
                            2;
    EXPECT_TRUE(at::allclose(alone.small.optimizer->state()[0].tensor.narrow(0, entry.offset, entry.size),
                             mean.view({-1}), 1e-6, 1e-9));
  });
}

TEST(CheckpointParts, SkippedStepsAreCountedOnceOnOtherRanks) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  struct Scale {
    double value;
    int64_t skipped;
    bool operator==(const Scale&) const = default;
  };
  const auto restored = [&](int ranks) {
    std::vector<Scale> scales(static_cast<size_t>(ranks));
    test::run_ranks(ranks, [&](comm::Group& group) {
      optim::LossScale scale;
      Parts mine(group, "local-sgd", 1, {});
      mine.small.replica.loss_scale = &scale;
      restore_checkpoint(path, group, mine.all());
      scales[static_cast<size_t>(group.rank())] = {scale.value(), scale.skipped()};
    });
    return scales;
  };
  test::run_ranks(2, [&](comm::Group& group) {
    optim::LossScale scale(1024);
    Parts mine(group, "local-sgd", 1, {});
    mine.small.replica.loss_scale = &scale;
    for (int i = 0; i <= group.rank(); ++i) scale.overflowed();
    save_checkpoint(path, group, mine.all());
  });
  EXPECT_EQ(restored(2), (std::vector<Scale>{{512, 1}, {256, 2}}));
  EXPECT_EQ(restored(3), (std::vector<Scale>{{512, 3}, {512, 0}, {512, 0}}));
}

/// What ranks say of a checkpoint that they cannot use; each must say something.
std::vector<std::string> complaints(const std::filesystem::path& path, int ranks) {
  std::vector<std::string> said(static_cast<size_t>(ranks));
  test::run_ranks(
      ranks,
      [&](comm::Group& group) {
        Parts mine(group, "ddp", 1, {});
        try {
          restore_checkpoint(path, group, mine.all());
        } catch (const DataError& error) {
          said[static_cast<size_t>(group.rank())] = error.what();
        }
      },
      std::chrono::seconds(20));
  return said;
}

TEST(CheckpointParts, EveryRankHearsWhyOneCannotBeRead) {
  const test::TempDir folder;
  for (const std::string& said : complaints(folder / "nothing", 3))
    EXPECT_NE(said.find("there is no checkpoint at"), std::string::npos) << said;
  test::write_text(folder / "cut", "not a checkpoint");
  for (const std::string& said : complaints(folder / "cut", 2))
    EXPECT_NE(said.find("is damaged"), std::string::npos) << said;
}

TEST(CheckpointParts, OfAnotherModelAreRefusedByTheFirstParameterThatDiffers) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  test::run_ranks(1, [&](comm::Group& group) {
    Parts mine(group, "ddp", 1, {});
    save_checkpoint(path, group, mine.all());
  });
  EXPECT_EQ(complaints(path, 1), std::vector<std::string>{""}) << "the foil fits";
  const Checkpoint whole = load_checkpoint(path);
  const auto expect_refused = [&](const auto& change, const std::string& expected) {
    Checkpoint changed = whole;
    change(changed.tensors);
    save_checkpoint(path, changed);
    for (const std::string& said : complaints(path, 2)) {
      EXPECT_NE(said.find("does not fit this run: " + expected), std::string::npos) << said;
    }
  };
  const auto find = [](std::vector<tensor::NamedTensor>& tensors, const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(), [&](const auto& each) { return each.name == name; });
  };
  const std::string word = "model.bert.embeddings.word_embeddings.weight", head = "model.classifier.weight";
  expect_refused(
      [&](auto& tensors) {
        find(tensors, word)->tensor = at::zeros({41, 8});
        find(tensors, head)->tensor = at::zeros({4, 8});
      },
      word + " is [41, 8] in it and [40, 8] here");
  expect_refused([&](auto& tensors) { tensors.erase(find(tensors, head)); }, head + " is missing in it");
  expect_refused(
      [&](auto& tensors) {
        tensors.push_back({"model.more", at::zeros({2})});
      },
      "model.more is in it and has no place here");
}

TEST(Checkpoint, FullDiskKeepsTheOldCheckpoint) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  save_checkpoint(path, some_checkpoint());
  // Writing goes to <path>.writing first: let that name lead to a device that is always full.
  std::filesystem::create_symlink("/dev/full", folder / "checkpoint.safetensors.writing");
  Checkpoint next = some_checkpoint();
  next.state["steps_done"] = 13;
  EXPECT_THROW(save_checkpoint(path, next), DataError);
  EXPECT_EQ(load_checkpoint(path).state.at("steps_done"), 12);
}

}  // namespace
}  // namespace syncopate::train
