#pragma once

#include <cstdint>
#include <string>

#include "syncopate/lifeline/socket.h"

namespace syncopate::comm {

/// The least that is mapped, in bytes, for so many of them.
constexpr int64_t whole_pages(int64_t bytes) {
  constexpr int64_t kPage = 4096;
  return (bytes + kPage - 1) / kPage * kPage;
}

/// Memory that processes of one host map: a file that has no name in any file system, so nothing is left
/// behind however they end. It lives as long as somebody has it open or mapped.
class MemoryFile {
 public:
  /// Zeros. The first `backed` bytes are there for sure: other pages would be a SIGBUS at their first touch
  /// where the system has no memory left. Throws CommError.
  MemoryFile(int64_t bytes, int64_t backed);
  /// Another process's, while that one holds it. Throws CommError where it cannot be opened or is another
  /// file: the process is on another machine, or in a container of its own.
  MemoryFile(const std::string& address, int64_t bytes);

  const std::string& address() const { return address_; }
  /// Makes sure of more of it. Throws CommError.
  void back(int64_t offset, int64_t bytes) const;
  /// All of it; unmapped by munmap(address, bytes). Throws CommError.
  std::byte* map() const;

 private:
  lifeline::Socket file_;  // a descriptor that closes itself
  std::string address_;
  int64_t bytes_;
};

}  // namespace syncopate::comm
