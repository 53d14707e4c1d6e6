#include "syncopate/comm/metered.h"

#include <ATen/ATen.h>

#include "syncopate/base/clock.h"
#include "syncopate/comm/reduce_type.h"

namespace syncopate::comm {
namespace {

class MeteredWork : public Pending::Work {
 public:
  MeteredWork(Pending inner, std::shared_ptr<Meter> meter, Kind kind)
      : inner_(std::move(inner)), meter_(std::move(meter)), kind_(kind) {}
  void wait() override {
    const Stopwatch watch;
    inner_.wait();
    meter_->kinds[static_cast<size_t>(kind_)].seconds += watch.seconds();
  }

 private:
  Pending inner_;
  std::shared_ptr<Meter> meter_;
  Kind kind_;
};

int64_t size_of(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

}  // namespace

const char* name_of(Kind kind) {
  static constexpr std::array<const char*, kKinds> names = {
      "all_reduce", "broadcast", "gather", "scatter", "all_gather", "send", "receive", "barrier", "split"};
  return names[static_cast<size_t>(kind)];
}

Count& Count::operator+=(const Count& other) {
  calls += other.calls;
  bytes += other.bytes;
  seconds += other.seconds;
  return *this;
}

Count Meter::total() const {
  Count sum;
  for (const Count& count : kinds) sum += count;
  return sum;
}

Meter Meter::operator-(const Meter& earlier) const {
  Meter since = *this;
  for (size_t k = 0; k < kinds.size(); ++k) {
    since.kinds[k] += {-earlier.kinds[k].calls, -earlier.kinds[k].bytes, -earlier.kinds[k].seconds};
  }
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

Metered::Metered(std::unique_ptr<Group> inner) : Metered(std::move(inner), std::make_shared<Meter>()) {}
Metered::Metered(std::unique_ptr<Group> inner, std::shared_ptr<Meter> meter)
    : inner_(std::move(inner)), meter_(std::move(meter)) {}

template <typename Start>
Pending Metered::measure(Kind kind, int64_t bytes, int root, Start&& start) {
  Count& count = meter_->kinds[static_cast<size_t>(kind)];
  const Stopwatch watch;
  Pending pending = start();
  count.seconds += watch.seconds();
  count.calls += 1;
  count.bytes += bytes_sent(kind, bytes, rank(), size(), root);
  return Pending(std::make_unique<MeteredWork>(std::move(pending), meter_, kind));
}

int Metered::rank() const { return inner_->rank(); }
int Metered::size() const { return inner_->size(); }

Pending Metered::all_reduce(at::Tensor tensor, Op op) {
  const int64_t element = static_cast<int64_t>(at::elementSize(reduced_as(tensor.scalar_type())));
  return measure(Kind::kAllReduce, tensor.numel() * element, 0,
                 [&] { return inner_->all_reduce(tensor, op); });
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
  return std::unique_ptr<Metered>(new Metered(std::move(part), meter_));
}

}  // namespace syncopate::comm
