#include "syncopate/comm/shm/region.h"

#include <sys/mman.h>

#include <algorithm>

#include "syncopate/base/error.h"

namespace syncopate::comm {

ShmRegion::ShmRegion(Waits& waits, const ShmPlace& place) : place_(place) {
  const int64_t ranks = place.size, pairs = ranks * ranks;
  pieces_at_ = whole_pages(ranks * static_cast<int64_t>(sizeof(Desk)));
  channels_at_ = pieces_at_ + 2 * (ranks + 1) * kPiece;
  rings_at_ = channels_at_ + whole_pages(pairs * static_cast<int64_t>(sizeof(Channel)));
  constexpr int64_t kAllRings = 16 << 20, kLeast = 64 << 10, kMost = 1 << 20;
  ring_bytes_ = whole_pages(std::clamp(kAllRings / pairs, kLeast, kMost));
  bytes_ = rings_at_ + pairs * ring_bytes_;
  try {
    find(waits);
    agree(waits);
  } catch (...) {
    if (base_ != nullptr) ::munmap(base_, static_cast<size_t>(bytes_));
    throw;
  }
}

ShmRegion::~ShmRegion() { ::munmap(base_, static_cast<size_t>(bytes_)); }

/// Rank 0 makes it, the others open it. `reason_` says why that did not work.
void ShmRegion::find(Waits& waits) {
  lifeline::Lifeline& line = *waits.lifeline();
  const lifeline::Lifeline::Waiting waiting(line);
  std::string address;
  if (place_.rank != 0) address = line.get(key("memory"), waits.timeout());
  try {
    if (place_.rank == 0) {
      file_.emplace(bytes_, rings_at_);  // rings as they are used: most pairs never write to each other
    } else if (!address.empty()) {
      file_.emplace(address, bytes_);
    }
    if (file_) base_ = file_->map();
  } catch (const CommError& error) {
    reason_ = error.what();
  }
  if (place_.rank == 0) line.set(key("memory"), base_ != nullptr ? file_->address() : "");
}

/// Everybody has to know whether it works for all; and rank 0's descriptor stays open until all have tried.
void ShmRegion::agree(Waits& waits) {
  lifeline::Lifeline& line = *waits.lifeline();
  constexpr int64_t kFailed = 1 << 20;
  if (!reason_.empty()) line.set(key("reason"), reason_);
  const int64_t count = line.add(key("opened"), base_ == nullptr ? kFailed + 1 : 1);
  if (count % kFailed == place_.size) line.set(key("all"), count == place_.size ? "yes" : "no");
  if (count == place_.size) {
    for (int rank = 0; rank < place_.size; ++rank) {
      desk(rank).ready.store(1);
      desk(rank).bell.ring();
    }
  }
  if (base_ != nullptr) {
    // A rank may have gone on and died by now, which is for later: so a look into the memory comes first.
    const auto ready = [&] { return mine().ready.load() == 1; };
    bool failed = false;
    constexpr std::chrono::milliseconds kLook(20);
    Wait wait(waits, "connecting");
    if (!ready())
      wait.until([&](std::chrono::milliseconds) {
        mine().bell.sleep(kLook, ready);
        failed = !ready() && line.exist({key("all")}) && line.get(key("all"), waits.timeout()) == "no";
        return ready() || failed;
      });
    if (!failed) return;
  }
  line.get(key("all"), waits.timeout());
  throw ConfigError(
      "the workers cannot share memory ({}): they run on several machines, in containers of their own, or "
      "with too "
      "little memory; use the backend gloo",
      line.get(key("reason"), waits.timeout()));
}

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

void ShmRegion::back_ring(int from, int to) const { file_->back(ring_offset(from, to), ring_bytes_); }

void ShmRegion::wake_all() const {
  for (int rank = 0; rank < place_.size; ++rank) {
    desk(rank).bell.ring();
    desk(rank).post.ring();
  }
}

void ShmRegion::leave(int who) const {
  mine().left.store(who + 1);
  wake_all();
}

}  // namespace syncopate::comm
