#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "syncopate/base/hash.h"
#include "syncopate/data/tokens.h"

// A stream of pieces in a file: a page with its size and checksums, then the pieces, 2 bytes each where the
// vocabulary's numbers fit into them, else 4. In this machine's byte order.
namespace syncopate::data {

/// What such a file is called.
inline std::filesystem::path token_file(const std::filesystem::path& folder, const std::string& name) {
  return folder / (name + ".tokens");
}

/// Bytes of each piece in a file.
size_t width_of_pieces(int64_t vocabulary);
/// About how many bytes the pieces of so many letters take: a piece has four letters or more in most
/// languages.
double expected_bytes(double letters, int64_t vocabulary);

/// A token file could not be written: a full disk, a quota.
class CannotWrite : public std::system_error {
 public:
  using std::system_error::system_error;
};

/// Writes such a file piece by piece; throws CannotWrite. One that was not finished is no token file.
class TokenFileWriter {
 public:
  TokenFileWriter(const std::filesystem::path& path, int64_t vocabulary);
  ~TokenFileWriter();
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  void append(std::span<const int32_t> pieces);
  void finish();

 private:
  void write(off_t at, const char* bytes, size_t size);
  void flush();

  int fd_;
  size_t width_;
  int64_t count_ = 0;
  off_t end_;                  ///< of what is written
  std::vector<char> buffer_;   ///< not yet written
  Checksum content_;           ///< of the bytes
  Checksum numbers_;           ///< of the pieces as int32, save the last ones
  std::vector<int32_t> last_;  ///< kMostDropped of them, fewer where there are not more
};

/// Such a file. What is read of it stays in the system's cache, which all processes share, and is no part of
/// this one's memory.
class TokenFile : public Tokens {
 public:
  /// Nothing where there is no such file, or one that is not whole by its size and first page. Throws
  /// std::system_error where it cannot be read, which says nothing about what it holds.
  static std::shared_ptr<const TokenFile> open(const std::filesystem::path& path);

  /// Reads all of it: whether that is what was written. Throws std::system_error as open() does.
  bool sound() const;

  int64_t size() const override { return header_.count; }
  void read(int64_t begin, std::span<int32_t> into) const override;
  uint64_t fingerprint(int64_t count) const override;

  /// The first page.
  struct Header {
    uint64_t format;
    int64_t width;  ///< bytes of a piece
    int64_t count;
    uint64_t content;                             ///< checksum of the pieces' bytes
    uint64_t prefixes[Tokens::kMostDropped + 1];  ///< [k]: fingerprint without the last k pieces
    uint64_t own;                                 ///< checksum of what stands before
  };

  TokenFile(std::filesystem::path path, int fd, const Header& header);  ///< for open(); owns `fd`
  ~TokenFile() override;
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

 private:
  /// Bytes of the pieces; false where there are not so many. Throws std::system_error.
  bool read_bytes(int64_t from, char* into, size_t size) const;

  const std::filesystem::path path_;
  const int fd_;
  Header header_;
};

}  // namespace syncopate::data
