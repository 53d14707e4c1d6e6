#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "syncopate/comm/operations/waits.h"
#include "syncopate/comm/shm/bell.h"
#include "syncopate/comm/shm/memory_file.h"

namespace syncopate::comm {

/// Where a group's ranks meet, and which of them this one is.
struct ShmPlace {
  std::string prefix;  ///< of its keys in the lifeline's store
  int rank = 0;
  int size = 1;
};

/// The memory that the ranks of one group on one host share. Collectives move tensors in pieces of up to
/// kPiece bytes a rank; pieces have numbers that count up over all operations, and two of them can be under
/// way at once.
class ShmRegion {
 public:
  static constexpr int64_t kPiece = 1 << 20;

  /// How far one rank is.
  struct alignas(64) Desk {
    Bell bell;                       ///< who waits for this rank sleeps here; itself in agree()
    std::atomic<int32_t> ready;      ///< 1: everybody has the memory
    std::atomic<int32_t> left;       ///< not 0: it does nothing any more, this is who it was, plus 1
    std::atomic<int64_t> published;  ///< pieces that it has put where others find them
    std::atomic<int64_t> reduced;    ///< of which it has summed its share
    std::atomic<int64_t> done;       ///< at which it will not look again
    std::array<std::atomic<int64_t>, 2> deed;   ///< what it published the last two for
    std::array<std::atomic<int64_t>, 2> place;  ///< and where in a window their tensors lie; 0: in none
    alignas(64) Bell post;                      ///< letters came, or there is room for more
  };

  /// One rank's letters to another: a ring of bytes.
  struct alignas(64) Channel {
    std::atomic<int64_t> written;
    alignas(64) std::atomic<int64_t> read;
  };

  /// Collective. Throws ConfigError, on every rank, where one of them cannot have the memory: ranks are on
  /// several machines or in containers of their own, or there is not enough.
  ShmRegion(Waits& waits, const ShmPlace& place);
  ~ShmRegion();
  ShmRegion(const ShmRegion&) = delete;
  ShmRegion& operator=(const ShmRegion&) = delete;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  Desk& desk(int rank) const { return reinterpret_cast<Desk*>(base_)[rank]; }
  Desk& mine() const { return desk(place_.rank); }
  /// What a rank publishes of a piece.
  std::byte* published(int rank, int64_t piece) const;
  /// The sum of a piece.
  std::byte* total(int64_t piece) const;
  Channel& channel(int from, int to) const;
  std::byte* ring(int from, int to) const;
  int64_t ring_bytes() const { return ring_bytes_; }
  /// Before the first byte goes into a ring: throws CommError where the system has no memory for it.
  void back_ring(int from, int to) const;

  /// Wakes all that sleep, at whatever rank's desk; who still waits sleeps on.
  void wake_all() const;
  /// This rank, which the lifeline knows as `who`, does nothing any more; what it has done stays for the
  /// others.
  void leave(int who) const;

 private:
  void find(Waits& waits);
  void agree(Waits& waits);
  std::byte* at(int64_t offset) const { return base_ + offset; }
  int64_t ring_offset(int from, int to) const;
  std::string key(const char* what) const { return place_.prefix + "/" + what; }

  ShmPlace place_;
  int64_t pieces_at_ = 0, channels_at_ = 0, rings_at_ = 0, bytes_ = 0;
  int64_t ring_bytes_ = 0;
  std::optional<MemoryFile> file_;
  std::string reason_;  ///< why this rank does not have it
  std::byte* base_ = nullptr;
};

}  // namespace syncopate::comm
