// The files that images come in.
#include "tests/support/image_files.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "syncopate/corpora/images/cifar10.h"
#include "syncopate/corpora/images/idx.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using syncopate::test::TempDir;
using syncopate::test::write_text;
using test::cifar_records;
using test::gzipped;
using test::idx_file;
using Ids = std::vector<int64_t>;

TEST(Cifar10, ReadsTheBinaryVersion) {
  const TempDir folder;
  for (int k = 1; k <= 5; ++k)
    write_text(folder / ("data_batch_" + std::to_string(k) + ".bin"),
               cifar_records(4, static_cast<uint64_t>(k)));
  write_text(folder / "test_batch.bin", cifar_records(3, 9));
  const ImageTask task = load_cifar10(folder.path(), Purpose::kTrain);
  EXPECT_EQ(task.train.size(), 20);
  EXPECT_EQ(task.test.size(), 3);
  EXPECT_EQ(task.labels[2], "bird");
  const std::string second = cifar_records(4, 2);
  EXPECT_EQ(task.train.labels[5], static_cast<uint8_t>(second[3073]));
  EXPECT_TRUE(std::equal(second.begin() + 3074, second.begin() + 2 * 3073,
                         task.train.pixels.begin() + 5 * 3072,
                         [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }));
  EXPECT_EQ(load_cifar10(folder.path(), Purpose::kEvaluate).train.size(), 0);
  write_text(folder / "batches.meta.txt", "a\nb\n");
  EXPECT_THROW(load_cifar10(folder.path(), Purpose::kTrain), DataError);
  std::filesystem::remove(folder / "batches.meta.txt");
  std::filesystem::remove(folder / "data_batch_3.bin");
  EXPECT_NE(
      test::sentence<DataError>([&] { load_cifar10(folder.path(), Purpose::kTrain); }).find("data_batch_3"),
      std::string::npos);
}

TEST(Cifar10, SingleFileIsSplitOnlyForTraining) {
  const TempDir folder;
  write_text(folder / "x.bin", cifar_records(40, 1));
  const ImageTask task = load_cifar10(folder / "x.bin", Purpose::kTrain);
  EXPECT_EQ(task.train.size(), 36);
  EXPECT_EQ(task.test.size(), 4);
  EXPECT_EQ(load_cifar10(folder / "x.bin", Purpose::kEvaluate).test.size(), 40);
  EXPECT_EQ(load_cifar10(folder / "x.bin", Purpose::kTrain).test.pixels, task.test.pixels)
      << "always the same";
}

TEST(Cifar10, RejectsDamagedFiles) {
  const TempDir folder;
  const auto said = [&](const std::string& bytes) {
    write_text(folder / "x.bin", bytes);
    return test::sentence<DataError>([&] { load_cifar10(folder / "x.bin", Purpose::kTrain); });
  };
  std::string bytes = cifar_records(3, 1);
  EXPECT_EQ(said(bytes), "");
  EXPECT_NE(
      said(bytes.substr(1)).find("has 9218 bytes, but 2 records of 3073 bytes are 6146 bytes and 3 are 9219"),
      std::string::npos);
  bytes[2 * 3073] = 10;
  EXPECT_NE(said(bytes).find("record 2 (at byte 6146) has the label 10, but labels are 0 to 9"),
            std::string::npos);
  EXPECT_NE(said(""), "");
  EXPECT_NE(said(cifar_records(1, 1)).find("a single image"), std::string::npos);
  EXPECT_THROW(load_cifar10({}, Purpose::kTrain), ConfigError);
}

TEST(Idx, ReadsPlainAndCompressedFiles) {
  const TempDir folder;
  const std::string bytes = idx_file({2, 3, 4}, 5);
  write_text(folder / "plain", bytes);
  write_text(folder / "packed.gz", gzipped(bytes));
  const IdxArray plain = read_idx(folder / "plain", 3);
  EXPECT_EQ(plain.sizes, (Ids{2, 3, 4}));
  EXPECT_TRUE(std::equal(plain.bytes.begin(), plain.bytes.end(), bytes.begin() + 16,
                         [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }));
  EXPECT_EQ(read_idx(folder / "packed.gz", 3).bytes, plain.bytes);
}

TEST(Idx, RejectsDamagedFiles) {
  const TempDir folder;
  const auto says = [&](const std::string& bytes, const std::string& expected) {
    write_text(folder / "x", bytes);
    const std::string said = test::sentence<DataError>([&] { read_idx(folder / "x", 3); });
    EXPECT_NE(said.find(expected), std::string::npos) << said;
  };
  const std::string bytes = idx_file({2, 3, 4}, 5), packed = gzipped(bytes);
  says(idx_file({24}, 5), "it should begin with 0x00000803");
  says("", "it should begin with 0x00000803");
  says(bytes.substr(0, 10), "it should begin with");
  says(bytes.substr(0, 30), "should hold 24 bytes after its header, as its sizes say, but ends after 14");
  says(bytes + "x", "but goes on");
  says(gzipped(bytes + "x"), "but goes on");
  says(packed.substr(0, packed.size() - 9), "unexpected end of file");
  says(idx_file({-1, -1, -1}, 5).substr(0, 16), "more than 64 GB");
  says(idx_file({1, 65536, 65535}, 5, false), "ends after 0");
  std::string wrong = packed;
  wrong[packed.size() - 6] ^= 1;  // within the check sum
  says(wrong, "cannot read the IDX file");
  EXPECT_THROW(read_idx(folder / "nowhere", 3), DataError);
}

TEST(Mnist, ReadsAFolder) {
  const TempDir folder;
  write_text(folder / "train-images-idx3-ubyte", idx_file({5, 4, 6}, 1));
  write_text(folder / "train-labels-idx1-ubyte.gz", gzipped(idx_file({5}, 2)));
  write_text(folder / "t10k-images-idx3-ubyte.gz", gzipped(idx_file({2, 4, 6}, 3)));
  write_text(folder / "t10k-labels-idx1-ubyte", idx_file({2}, 4));
  const ImageTask task = load_mnist("mnist", folder.path(), Purpose::kTrain);
  EXPECT_EQ(task.train.size(), 5);
  EXPECT_EQ(task.test.size(), 2);
  EXPECT_EQ(task.channels, 1);
  EXPECT_EQ(task.height, 4);
  EXPECT_EQ(task.width, 6);
  EXPECT_EQ(task.labels[7], "7");
  EXPECT_EQ(load_mnist("fashion-mnist", folder.path(), Purpose::kEvaluate).labels[9], "ankle boot");
  const auto said = [&] {
    return test::sentence<DataError>([&] { load_mnist("mnist", folder.path(), Purpose::kTrain); });
  };
  write_text(folder / "t10k-labels-idx1-ubyte", idx_file({3}, 4));
  EXPECT_NE(said().find("holds 2 images, but"), std::string::npos);
  write_text(folder / "t10k-labels-idx1-ubyte", idx_file({2}, 4).substr(0, 8) + "\x01\x0A");
  EXPECT_NE(said().find("label 1 is 10, but labels are 0 to 9"), std::string::npos) << said();
  write_text(folder / "t10k-labels-idx1-ubyte", idx_file({2}, 4));
  write_text(folder / "train-images-idx3-ubyte", idx_file({5, 6, 4}, 1));
  EXPECT_NE(said().find("images of 6 x 4, but the other split's are 4 x 6"), std::string::npos) << said();
  std::filesystem::remove(folder / "train-images-idx3-ubyte");
  EXPECT_NE(said().find("train-images-idx3-ubyte is missing, plain or with .gz"), std::string::npos)
      << said();
  EXPECT_THROW(load_mnist("mnist", {}, Purpose::kTrain), ConfigError);
  EXPECT_THROW(load_mnist("kmnist", folder.path(), Purpose::kTrain), ConfigError);
}

TEST(Mnist, FashionIsBuiltIn) {
  if (!std::filesystem::exists(kFashionMnistFolder)) GTEST_SKIP() << "needs Debian's dataset-fashion-mnist";
  const ImageTask task = load_mnist("fashion-mnist", {}, Purpose::kTrain);
  EXPECT_EQ(task.train.size(), 60000);
  EXPECT_EQ(task.test.size(), 10000);
  EXPECT_EQ(std::count(task.test.labels.begin(), task.test.labels.end(), 3), 1000);
  const Normalisation normal = normalisation_of(task.train, 1);
  EXPECT_NEAR(normal.mean[0], 0.2860, 1e-4);
  EXPECT_NEAR(normal.deviation[0], 0.3530, 1e-4);
}

TEST(Cifar10Shared, HasItsPublishedCountsAndMeans) {
  SYNCOPATE_NEED_SHARED(folder, "data/cifar10");
  const ImageTask task = load_cifar10(folder, Purpose::kTrain);
  EXPECT_EQ(task.train.size(), 50000);
  EXPECT_EQ(task.test.size(), 10000);
  EXPECT_EQ(task.labels[9], "truck");
  EXPECT_EQ(std::count(task.train.labels.begin(), task.train.labels.end(), 3), 5000);
  const Normalisation normal = normalisation_of(task.train, 3);
  for (const auto& [channel, mean, deviation] :
       {std::tuple{0U, 0.4914, 0.2470}, std::tuple{1U, 0.4822, 0.2435}, std::tuple{2U, 0.4465, 0.2616}}) {
    EXPECT_NEAR(normal.mean[channel], mean, 1e-4);
    EXPECT_NEAR(normal.deviation[channel], deviation, 1e-4);
  }
}

}  // namespace
}  // namespace syncopate::corpora
