#include "syncopate/train/checkpoint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>

#include "syncopate/base/error.h"
#include "syncopate/tensor/safetensors.h"
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
  // What the first format had: a checksum over less than the whole file.
  tensor::write_safetensors(path, {{"parameters", at::ones({4})}},
                            {{"format", "syncopate-checkpoint-1"}, {"state", "{}"}, {"checksum", "0"}});
  const std::string said = complaint_about(test::read_text(path), path);
  EXPECT_NE(said.find("has the format syncopate-checkpoint-1, but this version of Syncopate reads "
                      "syncopate-checkpoint-2; finish the run with the version that wrote it"),
            std::string::npos)
      << said;
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
  EXPECT_EQ(file.metadata().at("format"), "syncopate-checkpoint-2");
  EXPECT_EQ(file.metadata().at("checksum").size(), 16u);
  EXPECT_EQ(nlohmann::json::parse(file.metadata().at("state")).at("steps_done"), 12);
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
