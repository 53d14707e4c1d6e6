#include "syncopate/train/checkpoint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "tests/support/support.h"

namespace syncopate::train {
namespace {

Checkpoint some_checkpoint() {
  return {
      {{"parameters", at::arange(1000, at::kFloat)}, {"optimizer.exp_avg", at::arange(64, at::kFloat) * 0.5}},
      {{"steps_done", 12}, {"epoch_loss", 0.1 + 0.2}}};
}

TEST(Checkpoint, RoundTripsBitForBit) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  save_checkpoint(path, some_checkpoint());
  const Checkpoint back = load_checkpoint(path);
  at::Tensor parameters = at::zeros({1000}), moment = at::zeros({64});
  restore_tensors(back.tensors, {{"parameters", parameters}, {"optimizer.exp_avg", moment}}, path);
  EXPECT_TRUE(at::equal(parameters, at::arange(1000, at::kFloat)));
  EXPECT_TRUE(at::equal(moment, at::arange(64, at::kFloat) * 0.5));
  EXPECT_EQ(back.state.at("epoch_loss").get<double>(), 0.1 + 0.2);
}

TEST(Checkpoint, DetectsAnyDamage) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  save_checkpoint(path, some_checkpoint());
  const std::string whole = test::read_text(path);
  Rng rng(1);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    const size_t at = rng.below(whole.size());
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << rng.below(8)));
    test::write_text(path, damaged);
    try {
      load_checkpoint(path);
      // Harmless: white space of the header, or the value of "format".
      EXPECT_LT(at, whole.find("\"state\"") + whole.size() / 2) << "byte " << at;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("is damaged"), std::string::npos) << error.what();
    }
  }
  for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, whole.size() - 1}) {
    test::write_text(path, whole.substr(0, size));
    EXPECT_THROW(load_checkpoint(path), DataError) << size;
  }
  EXPECT_THROW(load_checkpoint(folder / "nothing"), DataError);
}

TEST(Checkpoint, DetectsDamageToData) {
  const test::TempDir folder;
  const auto path = folder / "checkpoint.safetensors";
  save_checkpoint(path, some_checkpoint());
  const std::string whole = test::read_text(path);
  for (size_t back = 1; back < 4000; back += 97) {
    std::string damaged = whole;
    damaged[whole.size() - back] ^= 4;
    test::write_text(path, damaged);
    EXPECT_THROW(load_checkpoint(path), DataError) << back;
  }
}

TEST(Checkpoint, RejectsACheckpointOfAnotherModel) {
  const Checkpoint checkpoint = some_checkpoint();
  at::Tensor other = at::zeros({999});
  EXPECT_THROW(restore_tensors(checkpoint.tensors, {{"parameters", other}}, "c"), DataError);
  EXPECT_THROW(restore_tensors(checkpoint.tensors, {{"momentum", other}}, "c"), DataError);
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
