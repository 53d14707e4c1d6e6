#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/comm/metering/payload.h"

namespace syncopate::comm {

enum class Kind { kAllReduce, kBroadcast, kGather, kScatter, kAllGather, kSend, kReceive, kBarrier, kSplit };
inline constexpr int kKinds = 9;

const char* name_of(Kind kind);  ///< "all_reduce"

struct Count {
  int64_t calls = 0;
  int64_t bytes = 0;   ///< what this rank put on the wire
  double seconds = 0;  ///< blocked: waiting, or starting an operation
  // Of operations that carry more than control, which mostly waits for the slowest rank:
  int64_t transfers = 0;  ///< calls
  int64_t size = 0;       ///< bytes of the tensors; of all ranks' where each has its own, as nccl-tests count
  /// Seconds in which at least one was under way, whether anybody waited or not; where Gloo does not tell the
  /// end (point to point), until it was waited for.
  double in_flight = 0;
  Count& operator+=(const Count& other);
};

/// Counts since the start; take one before and one after and subtract. An operation counts as sent when it is
/// started, and its time when it was waited for.
struct Meter {
  std::array<Count, kKinds> kinds;
  std::array<int64_t, kPayloads> carried{};  ///< bytes that this rank put on the wire, by what they carry
  double waited = 0;                         ///< seconds blocked in waits; to start operations apart
  /// Seconds in which an operation was under way and this rank was not blocked by one. Of point-to-point
  /// operations Gloo does not tell the end: they count where somebody had to wait for them.
  double hidden = 0;

  const Count& operator[](Kind kind) const { return kinds[static_cast<size_t>(kind)]; }
  Count total() const;
  Meter& operator+=(const Meter& other);
  Meter operator-(const Meter& earlier) const;

  std::vector<double> numbers() const;  ///< all of it in a fixed order, so that it can be summed and kept
  static Meter of_numbers(const std::vector<double>& numbers);  ///< throws InternalError for another length
};

/// Bytes that a rank puts on the wire with Gloo's algorithms (ring all-reduce and all-gather, binomial
/// broadcast, direct gather and scatter), without headers. `bytes` is the tensor as it travels.
int64_t bytes_sent(Kind kind, int64_t bytes, int rank, int size, int root);

/// One operation, once it was waited for.
struct Operation {
  Kind kind = Kind::kAllReduce;
  Payload payload = Payload::kControl;
  int64_t bytes = 0;          ///< of the tensor
  double begin = 0, end = 0;  ///< seconds of std::chrono::steady_clock
};

/// Wraps a group and is one. Groups split from it count into the same meter.
class Metered : public Group {
 public:
  explicit Metered(std::unique_ptr<Group> inner);
  Meter meter() const;
  double waited() const;  ///< Meter::waited alone
  /// Called from here on with every operation of this group and of those split from it, in the thread that
  /// waits for it. Empty: nobody is told.
  void observe(std::function<void(const Operation&)> observer);

  int rank() const override;
  int size() const override;
  Pending all_reduce(at::Tensor tensor, Op op) override;
  Pending broadcast(at::Tensor tensor, int root) override;
  Pending gather(std::vector<at::Tensor> into, at::Tensor mine, int root) override;
  Pending scatter(at::Tensor into, std::vector<at::Tensor> from, int root) override;
  Pending all_gather(std::vector<at::Tensor> into, at::Tensor mine) override;
  Pending send(at::Tensor tensor, int to, int tag) override;
  Pending receive(at::Tensor into, int from, int tag) override;
  void barrier() override;
  std::unique_ptr<Group> split(int color, int key) override { return part(color, key); }
  std::unique_ptr<Metered> part(int color, int key);  ///< `split` that returns a Metered
  at::Tensor room(int64_t count, at::ScalarType type) override { return inner_->room(count, type); }
  at::Tensor common(int64_t count, at::ScalarType type) override { return inner_->common(count, type); }
  Pending sum_into(at::Tensor total, at::Tensor mine) override;
  Pending sum_rows_into(at::Tensor total, at::Tensor mine, at::Tensor in_use, at::Tensor numbers) override;
  void set_timeout(std::chrono::milliseconds timeout) override;
  /// Lets `around` put another group in the place of the one that this wraps, of the same ranks. No operation
  /// is under way.
  void change(const std::function<void(std::unique_ptr<Group>&)>& around) { around(inner_); }

 private:
  struct Account;
  class Work;
  Metered(std::unique_ptr<Group> inner, std::shared_ptr<Account> account);
  template <typename Start>
  Pending measure(Kind kind, int64_t bytes, int root, Start&& start);

  std::unique_ptr<Group> inner_;
  std::shared_ptr<Account> account_;
};

}  // namespace syncopate::comm
