#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "syncopate/base/descriptor.h"

namespace syncopate {

/// A read-only view of a whole file, mapped into memory. Where the file becomes shorter meanwhile, reading
/// what is gone ends the process: see when_cut_short.
class MappedFile {
 public:
  MappedFile(const std::filesystem::path& path, std::string_view what);  ///< throws DataError
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return {data_, size_}; }
  /// What was read no longer counts as this process's memory; it is read again where it is needed. Any number
  /// of threads may read meanwhile.
  void let_go() const noexcept;
  /// Throws DataError where somebody has written to the file since it was mapped.
  void require_unchanged() const;

 private:
  const std::filesystem::path path_;
  const Descriptor file_;
  const struct stat status_;  ///< when it was mapped
  const size_t size_;
  const std::string cut_short_;  ///< the sentence
  const char* data_ = nullptr;
};

/// Who reads what is gone of a mapped file gets SIGBUS and cannot go on: `end` is called with a sentence
/// about the file, in the thread that reads, and does not return. Without one, the sentence goes to standard
/// error and the process ends with the exit code of bad data.
void when_cut_short(void (*end)(const std::string& sentence));

}  // namespace syncopate
