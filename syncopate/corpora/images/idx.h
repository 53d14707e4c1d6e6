#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/corpora/images/images.h"
#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// Where Debian's package dataset-fashion-mnist keeps Fashion-MNIST.
inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

/// An array of bytes as an IDX file holds it.
struct IdxArray {
  std::vector<int64_t> sizes;
  std::vector<uint8_t> bytes;
};

/// Reads an IDX file of bytes with `dimensions` dimensions, plain or compressed with gzip. Throws DataError
/// for another kind of file and for one that is shorter or longer than it says.
IdxArray read_idx(const std::filesystem::path& path, size_t dimensions);

/// The tasks "mnist" and "fashion-mnist". `path`: a folder with train-images-idx3-ubyte,
/// train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each plain or with .gz; empty:
/// Debian's, for fashion-mnist alone. Throws ConfigError for another name or a path that is needed, DataError
/// with the file.
ImageTask load_mnist(const std::string& name, const std::filesystem::path& path, Purpose purpose);

}  // namespace syncopate::corpora
