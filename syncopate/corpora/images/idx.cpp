#include "syncopate/corpora/images/idx.h"

#include <system_error>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/gzip.h"
#include "syncopate/corpora/splits.h"

namespace syncopate::corpora {
namespace {

constexpr uint8_t kBytes = 0x08;                  // IDX's code for unsigned bytes
constexpr int64_t kMostBytes = int64_t{1} << 36;  // more than any real file; keeps products from overflow

/// The file called `name`, or that with .gz.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& name) {
  std::error_code unreadable;  // taken for absent
  for (const char* ending : {"", ".gz"}) {
    const std::filesystem::path path = folder / (name + ending);
    if (std::filesystem::exists(path, unreadable)) return path;
  }
  throw DataError("{} is missing, plain or with .gz; give a folder that holds it as the data path",
                  (folder / name).string());
}

void load_split(const std::filesystem::path& folder, const std::string& prefix, ImageTask& task,
                ImageSet& into) {
  const std::filesystem::path image_file = find_file(folder, prefix + "-images-idx3-ubyte");
  const std::filesystem::path label_file = find_file(folder, prefix + "-labels-idx1-ubyte");
  IdxArray images = read_idx(image_file, 3);
  IdxArray labels = read_idx(label_file, 1);
  if (images.sizes[0] != labels.sizes[0]) {
    throw DataError("{} holds {} images, but {} holds {} labels; use files that belong together",
                    image_file.string(), images.sizes[0], label_file.string(), labels.sizes[0]);
  }
  if (images.sizes[0] == 0 || images.sizes[1] == 0 || images.sizes[2] == 0)
    throw DataError("{} holds no images; download it again", image_file.string());
  if (task.height == 0) {
    task.height = images.sizes[1];
    task.width = images.sizes[2];
  } else if (task.height != images.sizes[1] || task.width != images.sizes[2]) {
    throw DataError(
        "{} has images of {} x {}, but the other split's are {} x {}; use files that belong together",
        image_file.string(), images.sizes[1], images.sizes[2], task.height, task.width);
  }
  for (size_t i = 0; i < labels.bytes.size(); ++i) {
    if (labels.bytes[i] >= task.labels.size()) {
      throw DataError("{}: label {} is {}, but labels are 0 to {}; download it again", label_file.string(), i,
                      labels.bytes[i], task.labels.size() - 1);
    }
  }
  into.pixels = std::move(images.bytes);
  into.labels = std::move(labels.bytes);
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, size_t dimensions) {
  const std::string bytes = read_plain_or_gzip(path, "IDX file");
  const size_t header_size = 4 + 4 * dimensions;
  const bool whole = bytes.size() >= header_size;
  const auto* const header = reinterpret_cast<const uint8_t*>(bytes.data());
  if (!whole || header[0] != 0 || header[1] != 0 || header[2] != kBytes || header[3] != dimensions) {
    throw DataError(
        "{} is not an IDX file of bytes with {} dimensions: it should begin with {:#010x} and {} "
        "sizes; check the file",
        path.string(), dimensions, (uint32_t{kBytes} << 8) + dimensions, dimensions);
  }
  IdxArray array;
  int64_t total = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    const uint8_t* at = header + 4 + 4 * d;
    const int64_t size = int64_t{at[0]} << 24 | int64_t{at[1]} << 16 | int64_t{at[2]} << 8 | int64_t{at[3]};
    array.sizes.push_back(size);
    if (size != 0 && total > kMostBytes / size)
      throw DataError("{} says that it holds more than 64 GB; download it again", path.string());
    total *= size;
  }
  const auto wanted = static_cast<size_t>(total);
  const size_t found = bytes.size() - header_size;
  if (found != wanted) {
    throw DataError("{} should hold {} bytes after its header, as its sizes say, but {}; download it again",
                    path.string(), wanted, found < wanted ? fmt::format("ends after {}", found) : "goes on");
  }
  array.bytes.assign(header + header_size, header + bytes.size());
  return array;
}

ImageTask load_mnist(const std::string& name, const std::filesystem::path& path, Purpose purpose) {
  const bool fashion = name == "fashion-mnist";
  if (!fashion && name != "mnist") throw ConfigError("there is no task \"{}\" of IDX files", name);
  if (path.empty() && !fashion)
    throw ConfigError("the task {} needs data: give the folder of its IDX files as its data path", name);
  std::error_code unreadable;  // taken for absent
  if (path.empty() && !std::filesystem::is_directory(kFashionMnistFolder, unreadable)) {
    throw DataError(
        "{} is missing; run `apt-get install dataset-fashion-mnist`, or give a folder of IDX files as the "
        "data path",
        kFashionMnistFolder);
  }
  if (!path.empty()) require_data(path, "a folder of IDX files");
  const std::filesystem::path folder = path.empty() ? std::filesystem::path(kFashionMnistFolder) : path;
  ImageTask task;
  task.name = name;
  task.channels = 1;
  if (fashion) {
    task.labels = {"T-shirt/top", "trouser", "pullover", "dress", "coat",
                   "sandal",      "shirt",   "sneaker",  "bag",   "ankle boot"};
  } else {
    for (int digit = 0; digit < 10; ++digit) task.labels.push_back(std::to_string(digit));
  }
  load_split(folder, "t10k", task, task.test);
  if (purpose == Purpose::kTrain) load_split(folder, "train", task, task.train);
  return task;
}

}  // namespace syncopate::corpora
