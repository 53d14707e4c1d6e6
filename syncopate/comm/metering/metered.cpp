#include "syncopate/comm/metering/metered.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/comm/metering/flights.h"
#include "syncopate/comm/operations/completion.h"
#include "syncopate/comm/operations/reduce_type.h"

namespace syncopate::comm {
namespace {

double now() { return std::chrono::duration<double>(Moment::clock::now().time_since_epoch()).count(); }

int64_t size_of(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

/// What nccl-tests call the size of an operation: all ranks' parts together where each has its own.
int64_t size_of(Kind kind, int64_t bytes, int ranks) {
  const bool in_parts = kind == Kind::kAllGather || kind == Kind::kGather || kind == Kind::kScatter;
  return in_parts ? bytes * ranks : bytes;
}

}  // namespace

/// What is counted, and when operations were under way and this rank blocked since that was last reckoned.
/// Guarded by its mutex: a server answers each worker in a thread, over groups that count into one account.
struct Metered::Account {
  std::mutex mutex{};
  Meter meter{};
  std::vector<Span> flights{}, blocked{};
  std::array<std::vector<Span>, kKinds> transfers{};  ///< those flights that carry more than control
  std::shared_ptr<const std::function<void(const Operation&)>> observer{};  ///< null: none

  void block(Kind kind, const Span& span) {
    meter.kinds[static_cast<size_t>(kind)].seconds += span.end - span.begin;
    blocked.push_back(span);
    constexpr size_t kMost = 4096;  // where nobody asks
    if (blocked.size() >= kMost) reckon();
  }

  void reckon() {
    for (size_t k = 0; k < transfers.size(); ++k) {
      if (!transfers[k].empty()) meter.kinds[k].in_flight += covered(std::exchange(transfers[k], {}));
    }
    if (!flights.empty()) meter.hidden += hidden(flights, blocked);
    flights.clear();
    blocked.clear();
  }
};

class Metered::Work : public Pending::Work {
 public:
  Work(Pending inner, std::shared_ptr<Account> account, Kind kind, Payload payload, int64_t bytes, Span start)
      : inner_(std::move(inner)),
        account_(std::move(account)),
        kind_(kind),
        payload_(payload),
        bytes_(bytes),
        start_(start) {}

  void wait() override {
    take_end();  // of an operation that nobody measured
    const double from = now();
    inner_.wait();
    const double until = now();
    const auto ended = take_end();
    const auto span = flight(ended, from, until);
    // Where its end is not known, until now.
    const Span whole = span.value_or(Span{start_.end, until});
    std::unique_lock lock(account_->mutex);
    account_->meter.waited += until - from;
    account_->block(kind_, {from, until});
    if (span) account_->flights.push_back(*span);
    // Its bytes count, and so must a time.
    if (payload_ != Payload::kControl) account_->transfers[static_cast<size_t>(kind_)].push_back(whole);
    const auto observer = account_->observer;
    lock.unlock();
    if (observer) (*observer)({kind_, payload_, bytes_, whole.begin, whole.end});
    if (ended) note_end(*ended);  // for who measures more than this operation
  }

 private:
  /// When it was under way; nothing where that is not known.
  std::optional<Span> flight(std::optional<Moment> ended, double from, double until) const {
    constexpr double kAtOnce = 50e-6;
    if (!ended) {
      if (until - from < kAtOnce) return std::nullopt;
      return Span{start_.end, until};
    }
    const double end = std::min(until, std::chrono::duration<double>(ended->time_since_epoch()).count());
    // To start it may mean to wait for a device; whoever comes last to an in-process group does the work
    // then.
    return Span{end > start_.end ? start_.end : start_.begin, end};
  }

  Pending inner_;
  std::shared_ptr<Account> account_;
  Kind kind_;
  Payload payload_;
  int64_t bytes_;
  Span start_;  ///< in which the call that started it ran
};

const char* name_of(Kind kind) {
  static constexpr std::array<const char*, kKinds> names = {
      "all_reduce", "broadcast", "gather", "scatter", "all_gather", "send", "receive", "barrier", "split"};
  return names[static_cast<size_t>(kind)];
}

Count& Count::operator+=(const Count& other) {
  calls += other.calls;
  bytes += other.bytes;
  seconds += other.seconds;
  transfers += other.transfers;
  size += other.size;
  in_flight += other.in_flight;
  return *this;
}

Count Meter::total() const {
  Count sum;
  for (const Count& count : kinds) sum += count;
  return sum;
}

std::vector<double> Meter::numbers() const {
  std::vector<double> all;
  for (const Count& count : kinds) {
    all.insert(all.end(),
               {static_cast<double>(count.calls), static_cast<double>(count.bytes), count.seconds,
                static_cast<double>(count.transfers), static_cast<double>(count.size), count.in_flight});
  }
  for (const int64_t bytes : carried) all.push_back(static_cast<double>(bytes));
  all.insert(all.end(), {waited, hidden});
  return all;
}

Meter Meter::of_numbers(const std::vector<double>& numbers) {
  Meter meter;
  check(numbers.size() == meter.numbers().size(), "a meter's numbers are of another kind");
  auto next = numbers.begin();
  const auto whole = [&] { return static_cast<int64_t>(*next++); };
  for (Count& count : meter.kinds) {
    count.calls = whole();
    count.bytes = whole();
    count.seconds = *next++;
    count.transfers = whole();
    count.size = whole();
    count.in_flight = *next++;
  }
  for (int64_t& bytes : meter.carried) bytes = whole();
  meter.waited = *next++;
  meter.hidden = *next++;
  return meter;
}

Meter& Meter::operator+=(const Meter& other) {
  for (size_t k = 0; k < kinds.size(); ++k) kinds[k] += other.kinds[k];
  for (size_t p = 0; p < carried.size(); ++p) carried[p] += other.carried[p];
  waited += other.waited;
  hidden += other.hidden;
  return *this;
}

Meter Meter::operator-(const Meter& earlier) const {
  Meter since = *this;
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Count& count = earlier.kinds[k];
    since.kinds[k] +=
        {-count.calls, -count.bytes, -count.seconds, -count.transfers, -count.size, -count.in_flight};
  }
  for (size_t p = 0; p < carried.size(); ++p) since.carried[p] -= earlier.carried[p];
  since.waited -= earlier.waited;
  since.hidden -= earlier.hidden;
  return since;
}

int64_t bytes_sent(Kind kind, int64_t bytes, int rank, int size, int root) {
  if (size == 1) return 0;
  switch (kind) {
    case Kind::kAllReduce:
      return 2 * bytes * (size - 1) / size;
    case Kind::kAllGather:
      return bytes * (size - 1);
    case Kind::kGather:
      return rank == root ? 0 : bytes;
    case Kind::kScatter:
      return rank == root ? bytes * (size - 1) : 0;
    case Kind::kBroadcast: {
      // Counted from the root, round i has ranks below 2^i pass it on to those 2^i further.
      const int seen = (rank - root + size) % size;
      int64_t children = 0;
      for (int step = 1; step < size; step *= 2) children += seen < step && seen + step < size ? 1 : 0;
      return children * bytes;
    }
    case Kind::kSend:
      return bytes;
    default:
      return 0;
  }
}

Metered::Metered(std::unique_ptr<Group> inner) : Metered(std::move(inner), std::make_shared<Account>()) {}
Metered::Metered(std::unique_ptr<Group> inner, std::shared_ptr<Account> account)
    : inner_(std::move(inner)), account_(std::move(account)) {}

Meter Metered::meter() const {
  const std::lock_guard lock(account_->mutex);
  account_->reckon();
  return account_->meter;
}

double Metered::waited() const {
  const std::lock_guard lock(account_->mutex);
  return account_->meter.waited;
}

void Metered::observe(std::function<void(const Operation&)> observer) {
  const std::lock_guard lock(account_->mutex);
  account_->observer =
      observer ? std::make_shared<const std::function<void(const Operation&)>>(std::move(observer)) : nullptr;
}

template <typename Start>
Pending Metered::measure(Kind kind, int64_t bytes, int root, Start&& start) {
  const double from = now();
  Pending pending = start();
  const Span span{from, now()};
  const std::lock_guard lock(account_->mutex);
  account_->block(kind, span);
  Count& count = account_->meter.kinds[static_cast<size_t>(kind)];
  const int64_t sent = bytes_sent(kind, bytes, rank(), size(), root);
  count.calls += 1;
  count.bytes += sent;
  const Payload payload = Carrying::now();
  account_->meter.carried[static_cast<size_t>(payload)] += sent;
  if (payload != Payload::kControl) {
    count.transfers += 1;
    count.size += size_of(kind, bytes, size());
  }
  return Pending(std::make_unique<Work>(std::move(pending), account_, kind, payload, bytes, span));
}

int Metered::rank() const { return inner_->rank(); }
int Metered::size() const { return inner_->size(); }

Pending Metered::all_reduce(at::Tensor tensor, Op op) {
  const int64_t element = static_cast<int64_t>(at::elementSize(reduced_as(tensor.scalar_type())));
  return measure(Kind::kAllReduce, tensor.numel() * element, 0,
                 [&] { return inner_->all_reduce(tensor, op); });
}

Pending Metered::sum_into(at::Tensor total, at::Tensor mine) {
  return measure(Kind::kAllReduce, size_of(mine), 0, [&] { return inner_->sum_into(total, mine); });
}

Pending Metered::sum_rows_into(at::Tensor total, at::Tensor mine, at::Tensor in_use, at::Tensor numbers) {
  const int64_t bytes = numbers.numel() * mine.size(1) * static_cast<int64_t>(mine.element_size());
  return measure(Kind::kAllReduce, bytes, 0,
                 [&] { return inner_->sum_rows_into(total, mine, in_use, numbers); });
}

Pending Metered::broadcast(at::Tensor tensor, int root) {
  return measure(Kind::kBroadcast, size_of(tensor), root, [&] { return inner_->broadcast(tensor, root); });
}

Pending Metered::gather(std::vector<at::Tensor> into, at::Tensor mine, int root) {
  return measure(Kind::kGather, size_of(mine), root,
                 [&] { return inner_->gather(std::move(into), mine, root); });
}

Pending Metered::scatter(at::Tensor into, std::vector<at::Tensor> from, int root) {
  return measure(Kind::kScatter, size_of(into), root,
                 [&] { return inner_->scatter(into, std::move(from), root); });
}

Pending Metered::all_gather(std::vector<at::Tensor> into, at::Tensor mine) {
  return measure(Kind::kAllGather, size_of(mine), 0,
                 [&] { return inner_->all_gather(std::move(into), mine); });
}

Pending Metered::send(at::Tensor tensor, int to, int tag) {
  return measure(Kind::kSend, size_of(tensor), 0, [&] { return inner_->send(tensor, to, tag); });
}

Pending Metered::receive(at::Tensor into, int from, int tag) {
  return measure(Kind::kReceive, size_of(into), 0, [&] { return inner_->receive(into, from, tag); });
}

void Metered::barrier() {
  const auto block = [&] {
    inner_->barrier();
    return Pending();
  };
  measure(Kind::kBarrier, 0, 0, block);
}

void Metered::set_timeout(std::chrono::milliseconds timeout) { inner_->set_timeout(timeout); }

std::unique_ptr<Metered> Metered::part(int color, int key) {
  std::unique_ptr<Group> part;
  const auto block = [&] {
    part = inner_->split(color, key);
    return Pending();
  };
  measure(Kind::kSplit, 0, 0, block);
  return std::unique_ptr<Metered>(new Metered(std::move(part), account_));
}

}  // namespace syncopate::comm
