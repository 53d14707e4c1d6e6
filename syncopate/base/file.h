#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/base/descriptor.h"

namespace syncopate {

/// Opens a file to read it. Throws DataError; `what` names it for the user ("vocabulary").
Descriptor open_to_read(const std::filesystem::path& path, std::string_view what);
/// What the system knows of an open file. Throws DataError for what is no plain file.
struct stat status_of_plain(const Descriptor& file, const std::filesystem::path& path, std::string_view what);

/// The whole file as bytes. Throws DataError when it cannot be read.
std::string read_file(const std::filesystem::path& path, std::string_view what);

/// The same, at most so many bytes at a time: `use` is called with one portion after the other.
void read_portions(const std::filesystem::path& path, std::string_view what, size_t most,
                   const std::function<void(std::string_view)>& use);

/// Replaces `path` by `pieces`, one after the other: written beside it, flushed to disk and renamed, so that
/// a reader sees the old file or the new one and a failure (disk full) leaves the old one. Throws DataError.
void write_file_atomically(const std::filesystem::path& path, const std::vector<std::string_view>& pieces);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

/// Makes the folder and its parents; throws DataError when it cannot.
void make_folder(const std::filesystem::path& path);

/// Removes a file, or a folder with all that is in it; links are removed, not followed. False when something
/// is left, and errno says why. In place of std::filesystem::remove_all: PyPI's libtorch exports one of
/// its own, which is found first and, in the build with CUDA, crashes.
bool remove_tree(const std::filesystem::path& path) noexcept;

}  // namespace syncopate
