#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace syncopate::parallel {

/// Room that is taken piece by piece from its start and never given back: memory, or a mapped file. Nothing
/// is used up before it is taken. What was not written is zero.
class BufferMemory {
 public:
  explicit BufferMemory(size_t capacity);
  /// A file of this run's. One that another run left there, or uses now, is a DataError. It is removed at the
  /// end; one that a killed run left is used again when that run is resumed.
  BufferMemory(const std::filesystem::path& path, size_t capacity, uint64_t run);
  ~BufferMemory();
  BufferMemory(const BufferMemory&) = delete;
  BufferMemory& operator=(const BufferMemory&) = delete;

  size_t capacity() const { return capacity_; }
  size_t used() const { return used_; }
  char* data() const { return data_; }

  /// Where the piece begins, on a boundary of 64 bytes; nothing where there is no room left. Throws DataError
  /// when the disk is full.
  std::optional<size_t> take(size_t bytes);
  static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }
  /// Starts over: everything that was taken is zero again.
  void clear();
  /// Asks for a piece to be read from the disk; returns at once.
  void read_ahead(size_t offset, size_t bytes) const;

 private:
  void map(int file);
  void grow(size_t needed);

  size_t capacity_, used_ = 0, on_disk_ = 0;
  char* whole_ = nullptr;  ///< what is mapped
  char* data_ = nullptr;   ///< after the file's first page, which says whose it is
  int file_ = -1;
  std::filesystem::path path_{};
};

}  // namespace syncopate::parallel
