#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

namespace syncopate::data {

/// What the system knows of a file without reading it: another one whenever it is written or replaced.
std::string stamp_of(const std::filesystem::path& path);  ///< throws DataError when it is not there

/// The hash of each file's content, in hexadecimal. A file is read only where its stamp is not the one in the
/// `book`, a small file of ours that is written anew then; one whose last change is so fresh that another
/// could leave the stamp as it is, is read again the next time. A book that cannot be read or written is done
/// without. Throws DataError for files that cannot be read.
std::vector<std::string> hashes_of(const std::vector<std::filesystem::path>& files,
                                   const std::filesystem::path& book, time_t now = std::time(nullptr));

}  // namespace syncopate::data
