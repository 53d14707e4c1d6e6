#include "syncopate/comm/shm_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "syncopate/base/error.h"

namespace syncopate::comm {
namespace {

constexpr int64_t kPage = 4096;

int64_t whole_pages(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

[[noreturn]] void refused(int64_t bytes, int code) {
  throw CommError("cannot get {} MiB of memory to share with the other workers of this host: {}",
                  (bytes >> 20) + 1, std::strerror(code));
}

/// Memory that is not there would be a SIGBUS at its first touch, with no word of why.
void back(const lifeline::Socket& file, int64_t offset, int64_t bytes) {
  if (const int code = ::posix_fallocate(file.fd(), offset, bytes); code != 0) refused(bytes, code);
}

}  // namespace

ShmRegion::ShmRegion(Waits& waits, const ShmPlace& place) : place_(place) {
  const int64_t ranks = place.size, pairs = ranks * ranks;
  pieces_at_ = whole_pages(ranks * static_cast<int64_t>(sizeof(Desk)));
  channels_at_ = pieces_at_ + 2 * (ranks + 1) * kPiece;
  rings_at_ = channels_at_ + whole_pages(pairs * static_cast<int64_t>(sizeof(Channel)));
  constexpr int64_t kAllRings = 16 << 20, kLeast = 64 << 10, kMost = 1 << 20;
  ring_bytes_ = whole_pages(std::clamp(kAllRings / pairs, kLeast, kMost));
  bytes_ = rings_at_ + pairs * ring_bytes_;

  const std::string key = place.prefix + "/memory", opened = place.prefix + "/opened",
                    all = place.prefix + "/all";
  lifeline::Lifeline& line = *waits.lifeline();
  const lifeline::Lifeline::Waiting waiting(line);
  if (place.rank == 0) {
    file_ = lifeline::Socket(::memfd_create("syncopate", MFD_CLOEXEC));
    if (!file_.open() || ::ftruncate(file_.fd(), bytes_) != 0) refused(bytes_, errno);
    back(file_, 0, rings_at_);  // rings as they are used: most pairs never write to each other
    line.set(key, fmt::format("/proc/{}/fd/{}", ::getpid(), file_.fd()));
  } else {
    const std::string path = line.get(key, waits.timeout());
    file_ = lifeline::Socket(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  void* address = MAP_FAILED;
  if (file_.open())
    address = ::mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd(), 0);
  if (address != MAP_FAILED) base_ = static_cast<std::byte*>(address);
  // Everybody has to know whether it works for all, and rank 0's descriptor stays open until all have tried.
  constexpr int64_t kFailed = 1 << 20;
  const int64_t count = line.add(opened, base_ == nullptr ? kFailed + 1 : 1);
  if (count % kFailed == ranks) line.set(all, count == ranks ? "yes" : "no");
  if (count == ranks) {
    for (int rank = 0; rank < place.size; ++rank) {
      desk(rank).ready.store(1);
      desk(rank).bell.ring();
    }
  }
  if (base_ != nullptr && everybody_has_it(waits, all)) return;
  if (base_ == nullptr) line.get(all, waits.timeout());
  if (base_ != nullptr) ::munmap(base_, static_cast<size_t>(bytes_));
  throw ConfigError(
      "the workers cannot share memory: they run on several machines or in containers of their own; use the "
      "backend gloo");
}

/// Looks into the memory first: a rank may have gone on and died by then, and that is for later.
bool ShmRegion::everybody_has_it(Waits& waits, const std::string& key) {
  const auto ready = [&] { return mine().ready.load() == 1; };
  constexpr std::chrono::milliseconds kLook(20);
  bool refused = false;
  if (!ready())
    waits.wait("connecting", [&](std::chrono::milliseconds) {
      mine().bell.sleep(kLook, ready);
      refused =
          !ready() && waits.lifeline()->exist({key}) && waits.lifeline()->get(key, waits.timeout()) == "no";
      return ready() || refused;
    });
  return !refused;
}

ShmRegion::~ShmRegion() { ::munmap(base_, static_cast<size_t>(bytes_)); }

std::byte* ShmRegion::published(int rank, int64_t piece) const {
  return at(pieces_at_ + (piece % 2 * (place_.size + 1) + rank) * kPiece);
}

std::byte* ShmRegion::total(int64_t piece) const { return published(place_.size, piece); }

ShmRegion::Channel& ShmRegion::channel(int from, int to) const {
  return reinterpret_cast<Channel*>(at(channels_at_))[from * place_.size + to];
}

int64_t ShmRegion::ring_offset(int from, int to) const {
  return rings_at_ + (static_cast<int64_t>(from) * place_.size + to) * ring_bytes_;
}

std::byte* ShmRegion::ring(int from, int to) const { return at(ring_offset(from, to)); }

void ShmRegion::back_ring(int from, int to) { back(file_, ring_offset(from, to), ring_bytes_); }

void ShmRegion::tell() const {
  for (int other = 0; other < place_.size; ++other) {
    if (other != place_.rank) desk(other).bell.ring();
  }
}

}  // namespace syncopate::comm
