#include "syncopate/comm/shm/post.h"

#include <algorithm>
#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/comm/group.h"

namespace syncopate::comm {
namespace {

size_t at(int rank) { return static_cast<size_t>(rank); }

int64_t size_of(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

/// Between a ring and memory, over the ring's end.
void into_ring(std::byte* ring, int64_t size, int64_t position, const std::byte* from, int64_t bytes) {
  const int64_t place = position % size, first = std::min(bytes, size - place);
  std::memcpy(ring + place, from, static_cast<size_t>(first));
  std::memcpy(ring, from + first, static_cast<size_t>(bytes - first));
}

void from_ring(const std::byte* ring, int64_t size, int64_t position, std::byte* to, int64_t bytes) {
  const int64_t place = position % size, first = std::min(bytes, size - place);
  std::memcpy(to, ring + place, static_cast<size_t>(first));
  std::memcpy(to + first, ring, static_cast<size_t>(bytes - first));
}

constexpr auto kHead = static_cast<int64_t>(2 * sizeof(int64_t));

}  // namespace

ShmPost::ShmPost(std::shared_ptr<ShmRegion> region) : region_(std::move(region)) {
  static_assert(sizeof(Head) == kHead);
  outgoing_.resize(at(region_->size()));
  backed_.resize(at(region_->size()));
  incoming_.resize(at(region_->size()));
}

std::shared_ptr<ShmPost::Letter> ShmPost::send(at::Tensor tensor, int to, int tag) {
  const std::lock_guard lock(mutex_);
  auto letter = std::make_shared<Letter>(Letter{to, tag, std::move(tensor)});
  if (!backed_[at(to)]) {
    region_->back_ring(region_->rank(), to);
    backed_[at(to)] = true;
  }
  outgoing_[at(to)].push_back(letter);
  while (push(to)) {
  }
  return letter;
}

std::shared_ptr<ShmPost::Letter> ShmPost::receive(at::Tensor into, int from, int tag) {
  const std::lock_guard lock(mutex_);
  auto letter = std::make_shared<Letter>(Letter{from, tag, std::move(into)});
  const auto waits = [&](const Early& early) {
    return !early.taker && early.tag == tag && (from == kAnyRank || early.from == from);
  };
  const auto found = std::find_if(early_.begin(), early_.end(), waits);
  if (found == early_.end()) {
    expected_.push_back(letter);
    return letter;
  }
  found->taker = letter;
  if (found->complete) {
    const Early early = std::move(*found);
    early_.erase(found);
    if (fits(*letter, early.from, static_cast<int64_t>(early.bytes.size())))
      std::memcpy(letter->tensor.data_ptr(), early.bytes.data(), early.bytes.size());
    end(*letter);
  }
  return letter;
}

bool ShmPost::move() {
  const std::lock_guard lock(mutex_);
  bool moved = false;
  for (int other = 0; other < region_->size(); ++other) {
    if (other == region_->rank()) continue;
    moved = push(other) || moved;
    moved = pull(other) || moved;
  }
  return moved;
}

bool ShmPost::done(const Letter& letter) const {
  const std::lock_guard lock(mutex_);
  return letter.done;
}

bool ShmPost::stirred() const {
  const std::lock_guard lock(mutex_);
  for (int other = 0; other < region_->size(); ++other) {
    if (other == region_->rank()) continue;
    const ShmRegion::Channel &out = region_->channel(region_->rank(), other),
                             &in = region_->channel(other, region_->rank());
    if (!outgoing_[at(other)].empty()) {
      const int64_t room = region_->ring_bytes() - (out.written.load() - out.read.load());
      if (room >= (outgoing_[at(other)].front()->moved == 0 ? kHead : 1)) return true;
    }
    if (in.written.load() > in.read.load() && expects(other)) return true;
  }
  return false;
}

/// As much of the first letter as there is room for.
bool ShmPost::push(int to) {
  std::list<std::shared_ptr<Letter>>& letters = outgoing_[at(to)];
  if (letters.empty()) return false;
  ShmRegion::Channel& channel = region_->channel(region_->rank(), to);
  std::byte* const ring = region_->ring(region_->rank(), to);
  const int64_t size = region_->ring_bytes(), begin = channel.written.load();
  int64_t written = begin;
  const auto room = [&] { return channel.read.load() + size - written; };
  Letter& letter = *letters.front();
  const int64_t bytes = size_of(letter.tensor);
  if (letter.moved == 0) {
    if (room() < kHead) return false;
    const Head head{bytes, letter.tag};
    into_ring(ring, size, written, reinterpret_cast<const std::byte*>(&head), kHead);
    written += kHead;
    letter.moved = kHead;
  }
  const int64_t more = std::min(room(), bytes + kHead - letter.moved);
  into_ring(ring, size, written,
            static_cast<const std::byte*>(letter.tensor.data_ptr()) + letter.moved - kHead, more);
  written += more;
  letter.moved += more;
  if (written == begin) return false;
  channel.written.store(written);
  if (letter.moved == bytes + kHead) {
    end(letter);
    letters.pop_front();
  }
  region_->desk(to).post.ring();
  return true;
}

/// Whether what comes from a rank next is of any use now.
bool ShmPost::expects(int from) const {
  if (incoming_[at(from)].taken > 0) return true;
  return std::any_of(expected_.begin(), expected_.end(),
                     [&](const auto& letter) { return letter->peer == from || letter->peer == kAnyRank; });
}

bool ShmPost::pull(int from) {
  if (!expects(from)) return false;
  ShmRegion::Channel& channel = region_->channel(from, region_->rank());
  const std::byte* const ring = region_->ring(from, region_->rank());
  const int64_t size = region_->ring_bytes(), begin = channel.read.load();
  int64_t read = begin;
  Incoming& next = incoming_[at(from)];
  if (next.taken == 0) {
    if (channel.written.load() - read < kHead) return false;
    from_ring(ring, size, read, reinterpret_cast<std::byte*>(&next.head), kHead);
    read += kHead;
    next.taken = kHead;
    open(from);
  }
  const int64_t more = std::min(channel.written.load() - read, next.head.bytes + kHead - next.taken);
  from_ring(ring, size, read, next.into + next.taken - kHead, more);
  read += more;
  next.taken += more;
  if (read == begin) return false;
  channel.read.store(read);
  if (next.taken == next.head.bytes + kHead) close(from);
  region_->desk(from).post.ring();
  return true;
}

/// A letter has begun to arrive: into the tensor of who expects it, else aside.
void ShmPost::open(int from) {
  Incoming& next = incoming_[at(from)];
  const auto found = std::find_if(expected_.begin(), expected_.end(), [&](const auto& letter) {
    return letter->tag == next.head.tag && (letter->peer == from || letter->peer == kAnyRank);
  });
  if (found != expected_.end()) {
    const std::shared_ptr<Letter> letter = *found;
    expected_.erase(found);
    if (fits(*letter, from, next.head.bytes)) {
      next.letter = letter;
      next.into = static_cast<std::byte*>(letter->tensor.data_ptr());
      return;
    }
    end(*letter);
  }
  next.early = early_.insert(early_.end(), Early{.from = from, .tag = next.head.tag});
  next.early->bytes.resize(static_cast<size_t>(next.head.bytes));
  next.into = next.early->bytes.data();
}

void ShmPost::close(int from) {
  const Incoming next = std::exchange(incoming_[at(from)], {});
  if (next.letter) return end(*next.letter);
  next.early->complete = true;
  const std::shared_ptr<Letter> taker = next.early->taker;
  if (!taker) return;
  if (fits(*taker, from, next.head.bytes))
    std::memcpy(taker->tensor.data_ptr(), next.early->bytes.data(), next.early->bytes.size());
  early_.erase(next.early);
  end(*taker);
}

/// Whether a letter has the length that it is expected to have; its error says so if not.
bool ShmPost::fits(Letter& letter, int from, int64_t bytes) {
  if (size_of(letter.tensor) == bytes) return true;
  letter.error = fmt::format("rank {} of a group sent {} bytes with tag {} where rank {} expected {}", from,
                             bytes, letter.tag, region_->rank(), size_of(letter.tensor));
  return false;
}

void ShmPost::end(Letter& letter) {
  letter.done = true;
  letter.ended = std::chrono::steady_clock::now();
  region_->mine().post.ring();  // another thread of this rank may wait for it
}

}  // namespace syncopate::comm
