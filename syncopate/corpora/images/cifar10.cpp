#include "syncopate/corpora/images/cifar10.h"

#include <string_view>
#include <system_error>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/mapped_file.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/splits.h"

namespace syncopate::corpora {
namespace {

constexpr size_t kPixels = 3 * 32 * 32;
constexpr size_t kRecord = 1 + kPixels;
constexpr size_t kLabels = 10;

void read_records(const std::filesystem::path& path, ImageSet& into) {
  const MappedFile file(path, "CIFAR-10 file");
  const std::string_view bytes = file.bytes();
  if (bytes.empty() || bytes.size() % kRecord != 0) {
    const size_t records = bytes.size() / kRecord;
    throw DataError(
        "{} has {} bytes, but {} records of {} bytes are {} bytes and {} are {}; download it again",
        path.string(), bytes.size(), records, kRecord, records * kRecord, records + 1,
        (records + 1) * kRecord);
  }
  into.pixels.reserve(into.pixels.size() + bytes.size());
  for (size_t at = 0; at < bytes.size(); at += kRecord) {
    const auto label = static_cast<uint8_t>(bytes[at]);
    if (label >= kLabels) {
      throw DataError(
          "{}: record {} (at byte {}) has the label {}, but labels are 0 to {}; download it again",
          path.string(), at / kRecord, at, label, kLabels - 1);
    }
    into.labels.push_back(label);
    const std::string_view pixels = bytes.substr(at + 1, kPixels);
    into.pixels.insert(into.pixels.end(), pixels.begin(), pixels.end());
  }
}

std::vector<std::string> read_names(const std::filesystem::path& path) {
  std::error_code unreadable;  // taken for absent
  if (!std::filesystem::exists(path, unreadable)) {
    return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  }
  const std::string text = read_file(path, "names of the labels");
  std::vector<std::string> names;
  for (const std::string_view line : split(text, '\n')) {
    if (!trim(line).empty()) names.emplace_back(trim(line));
  }
  if (names.size() != kLabels) {
    throw DataError("{} names {} labels, but CIFAR-10 has {}; repair or remove it", path.string(),
                    names.size(), kLabels);
  }
  return names;
}

}  // namespace

ImageTask load_cifar10(const std::filesystem::path& path, Purpose purpose) {
  if (path.empty()) {
    throw ConfigError(
        "the task cifar10 needs data: give the folder of its binary version (data_batch_1.bin, ...) as its "
        "data path");
  }
  require_data(path, "the folder of CIFAR-10's binary version, or one of its files,");
  std::error_code unreadable;  // reading says why
  const bool folder = std::filesystem::is_directory(path, unreadable);
  ImageTask task{.name = "cifar10",
                 .channels = 3,
                 .height = 32,
                 .width = 32,
                 .labels = read_names((folder ? path : path.parent_path()) / "batches.meta.txt"),
                 .train = {},
                 .test = {},
                 .notes = {}};
  if (folder) {
    read_records(path / "test_batch.bin", task.test);
    for (int k = 1; k <= 5 && purpose == Purpose::kTrain; ++k)
      read_records(path / fmt::format("data_batch_{}.bin", k), task.train);
    return task;
  }
  ImageSet whole;
  read_records(path, whole);
  if (purpose != Purpose::kTrain) {
    task.test = std::move(whole);
    return task;
  }
  hold_out_tenth(whole, task);
  if (task.train.size() == 0)
    throw DataError("{} holds a single image, too few to train and test on; give more", path.string());
  task.notes.push_back(fmt::format("{}: {} of {} images held out as the test split, by their hash",
                                   path.string(), task.test.size(), whole.size()));
  return task;
}

}  // namespace syncopate::corpora
