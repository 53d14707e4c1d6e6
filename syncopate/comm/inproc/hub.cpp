#include "syncopate/comm/inproc/hub.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

#include "syncopate/base/error.h"
#include "syncopate/comm/group.h"
#include "syncopate/comm/operations/completion.h"
#include "syncopate/gpu/graph.h"
#include "syncopate/gpu/shared.h"

namespace syncopate::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSlice(250);

bool same_shape(const Contribution& a, const Contribution& b) {
  if (a.tensor.defined() != b.tensor.defined()) return false;
  return !a.tensor.defined() ||
         (a.tensor.numel() == b.tensor.numel() && a.tensor.scalar_type() == b.tensor.scalar_type());
}

/// Ranks are threads, which may have streams of their own on a GPU: nothing is handed over before it is
/// there.
void finish_device_work(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.is_cuda() && gpu::built()) gpu::finish();
}

void finish_device_work(const Contribution& contribution) {
  finish_device_work(contribution.tensor);
  for (const at::Tensor& tensor : contribution.list) finish_device_work(tensor);
}

}  // namespace

Hub::Hub(int size) : size_(size), calls_(static_cast<size_t>(size)), gone_(static_cast<size_t>(size)) {}

void Hub::check_alive() const {
  if (!failure_.empty()) throw CommError("{}", failure_);
}

void Hub::fail(const std::string& sentence) {
  if (failure_.empty()) failure_ = sentence;
  changed_.notify_all();
  throw CommError("{}", sentence);
}

std::shared_ptr<Hub::Slot> Hub::meet(int rank, Contribution contribution, const Action& action) {
  if (size_ > 1) finish_device_work(contribution);
  std::unique_lock lock(mutex_);
  check_alive();
  const int64_t number = calls_[static_cast<size_t>(rank)]++;
  std::shared_ptr<Slot>& place = slots_[number];
  if (!place) {
    place = std::make_shared<Slot>();
    place->name = contribution.operation;
    place->contributions.resize(static_cast<size_t>(size_));
    place->here.resize(static_cast<size_t>(size_));
  }
  const std::shared_ptr<Slot> slot = place;
  for (int other = 0; other < size_; ++other) {
    const Contribution& theirs = slot->contributions[static_cast<size_t>(other)];
    if (!slot->here[static_cast<size_t>(other)]) continue;
    if (std::string_view(theirs.operation) != contribution.operation ||
        theirs.detail != contribution.detail || !same_shape(theirs, contribution)) {
      fail(fmt::format(
          "rank {} called {} where rank {} called {} with another tensor or root: all ranks must make "
          "the same calls in the same order",
          rank, contribution.operation, other, theirs.operation));
    }
  }
  slot->contributions[static_cast<size_t>(rank)] = std::move(contribution);
  slot->here[static_cast<size_t>(rank)] = true;
  if (++slot->arrived < static_cast<size_t>(size_)) return slot;
  slots_.erase(number);
  lock.unlock();  // nobody else touches a complete slot until it is done
  action(slot->contributions);
  if (size_ > 1) {
    for (const Contribution& each : slot->contributions) finish_device_work(each);
  }
  lock.lock();
  end(*slot);
  slot->contributions.clear();
  changed_.notify_all();
  return slot;
}

std::shared_ptr<Hub::Slot> Hub::letter_slot(const char* name, int awaited) {
  auto slot = std::make_shared<Slot>();
  slot->name = name;
  slot->point_to_point = true;
  slot->awaited = awaited;
  return slot;
}

void Hub::end(Slot& slot) {
  slot.done = true;
  slot.ended = Clock::now();
}

void Hub::deliver(const Letter& sent, const Letter& expected) {
  if (sent.tensor.numel() != expected.tensor.numel() ||
      sent.tensor.scalar_type() != expected.tensor.scalar_type()) {
    fail(fmt::format("rank {} sent {} elements with tag {} where rank {} expected {}, or of another type",
                     sent.from, sent.tensor.numel(), sent.tag, expected.to, expected.tensor.numel()));
  }
  expected.tensor.copy_(sent.tensor);
  finish_device_work(expected.tensor);
  finish_device_work(sent.tensor);
  end(*sent.slot);
  end(*expected.slot);
  changed_.notify_all();
}

std::shared_ptr<Hub::Slot> Hub::send(int rank, int to, int tag, at::Tensor tensor) {
  finish_device_work(tensor);
  const std::lock_guard lock(mutex_);
  check_alive();
  const Letter letter{rank, to, tag, std::move(tensor), letter_slot("send", to)};
  const auto fits = [&](const Letter& other) {
    return other.to == to && other.tag == tag && (other.from == rank || other.from == kAnyRank);
  };
  const auto found = std::find_if(expected_.begin(), expected_.end(), fits);
  if (found == expected_.end()) {
    sent_.push_back(letter);
  } else {
    const Letter expected = *found;
    expected_.erase(found);
    deliver(letter, expected);
  }
  return letter.slot;
}

std::shared_ptr<Hub::Slot> Hub::receive(int rank, int from, int tag, at::Tensor into) {
  finish_device_work(into);
  const std::lock_guard lock(mutex_);
  check_alive();
  const Letter letter{from, rank, tag, std::move(into), letter_slot("receive", from)};
  const auto fits = [&](const Letter& other) {
    return other.to == rank && other.tag == tag && (from == kAnyRank || other.from == from);
  };
  const auto found = std::find_if(sent_.begin(), sent_.end(), fits);
  if (found == sent_.end()) {
    expected_.push_back(letter);
  } else {
    const Letter sent = *found;
    sent_.erase(found);
    deliver(sent, letter);
  }
  return letter.slot;
}

std::string Hub::missing(int rank, const Slot& slot) const {
  const auto gone = [&](int other) { return static_cast<bool>(gone_[static_cast<size_t>(other)]); };
  if (slot.point_to_point) {
    if (slot.awaited != kAnyRank) return gone(slot.awaited) ? fmt::format("rank {} died", slot.awaited) : "";
    for (int other = 0; other < size_; ++other) {
      if (other != rank && !gone(other)) return "";
    }
    return "all other ranks died";
  }
  for (int other = 0; other < size_; ++other) {
    if (gone(other) && !slot.here[static_cast<size_t>(other)]) return fmt::format("rank {} died", other);
  }
  return "";
}

void Hub::wait(int rank, std::chrono::milliseconds timeout, Slot& slot) {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return slot.done || !failure_.empty() || !missing(rank, slot).empty(); };
  bool in_time = ready();
  // A process that was stopped for a while has not waited for others all that time.
  for (Clock::duration waited{0}; !in_time && waited < timeout;) {
    const Clock::time_point start = Clock::now();
    const Clock::duration slice = std::min<Clock::duration>(kSlice, timeout - waited);
    in_time = changed_.wait_for(lock, slice, ready);
    waited += std::min<Clock::duration>(Clock::now() - start, 4 * kSlice);
  }
  if (slot.done) return note_end(slot.ended);
  check_alive();
  const std::string reason = missing(rank, slot);
  if (!reason.empty()) fail(fmt::format("{} while rank {} waited in {}", reason, rank, slot.name));
  check(!in_time, "an in-process wait ended for no reason");
  const double seconds = std::chrono::duration<double>(timeout).count();
  for (int other = 0; other < size_; ++other) {
    const bool late = slot.point_to_point ? other == slot.awaited : !slot.here[static_cast<size_t>(other)];
    if (late)
      fail(fmt::format("rank {} did not answer for {:.3g} s (rank {} waited in {})", other, seconds, rank,
                       slot.name));
  }
  fail(fmt::format("rank {} waited {:.3g} s in {}", rank, seconds, slot.name));
}

void Hub::leave(int rank) {
  const std::lock_guard lock(mutex_);
  gone_[static_cast<size_t>(rank)] = true;
  changed_.notify_all();
}

std::pair<std::shared_ptr<Hub>, int> Hub::split(int rank, std::chrono::milliseconds timeout, int color,
                                                int key) {
  const at::Tensor wish = at::empty({2}, at::kLong);
  wish.data_ptr<int64_t>()[0] = color;
  wish.data_ptr<int64_t>()[1] = key;
  int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = calls_[static_cast<size_t>(rank)];
  }
  const auto slot = meet(rank, {"split", 0, wish, {}}, [&](std::vector<Contribution>& contributions) {
    std::vector<std::tuple<int64_t, int64_t, int>> order;  // color, key, rank
    for (int r = 0; r < size_; ++r) {
      const int64_t* theirs = contributions[static_cast<size_t>(r)].tensor.data_ptr<int64_t>();
      order.emplace_back(theirs[0], theirs[1], r);
    }
    std::sort(order.begin(), order.end());
    std::map<int64_t, int> sizes;
    for (const auto& [c, k, r] : order) ++sizes[c];
    std::map<int64_t, std::pair<std::shared_ptr<Hub>, int>> made;  // and how many have been seated in it
    const std::lock_guard lock(mutex_);
    for (const auto& [c, k, r] : order) {
      auto& [hub, seated] = made[c];
      if (!hub) hub = std::make_shared<Hub>(sizes[c]);
      children_[number][r] = {hub, seated++};
    }
  });
  wait(rank, timeout, *slot);
  const std::lock_guard lock(mutex_);
  auto& seats = children_[number];
  const auto mine = seats.extract(rank).mapped();
  if (seats.empty()) children_.erase(number);
  return mine;
}

}  // namespace syncopate::comm
