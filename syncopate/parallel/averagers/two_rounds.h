#pragma once

#include <deque>
#include <memory>

#include "syncopate/comm/metering/payload.h"
#include "syncopate/comm/pending.h"

namespace syncopate::parallel {

/// Exchanges of two rounds, several of them under way: the second round of each needs what the first brought.
/// A group takes calls from one thread at a time and in one order on all ranks, so second rounds are begun
/// when somebody first waits, for all that were started, in that order.
class TwoRounds {
 public:
  class Exchange {
   public:
    virtual ~Exchange() = default;
    virtual void turn() = 0;    ///< waits for the first round and starts the second
    virtual void finish() = 0;  ///< waits for the second round and puts the result in place
  };

  /// The exchange has started its first round. The result must not outlive this.
  comm::Pending add(std::shared_ptr<Exchange> exchange) {
    to_turn_.push_back({exchange, comm::Carrying::now()});
    return comm::Pending(std::make_unique<Work>(*this, std::move(exchange)));
  }

 private:
  struct Begun {
    std::shared_ptr<Exchange> exchange;
    comm::Payload carries;  ///< in the second round as in the first
  };
  class Work : public comm::Pending::Work {
   public:
    Work(TwoRounds& rounds, std::shared_ptr<Exchange> exchange)
        : rounds_(rounds), exchange_(std::move(exchange)) {}
    void wait() override {
      while (!rounds_.to_turn_.empty()) {
        const Begun next = std::move(rounds_.to_turn_.front());
        rounds_.to_turn_.pop_front();
        const comm::Carrying carrying(next.carries);
        next.exchange->turn();
      }
      exchange_->finish();
    }

   private:
    TwoRounds& rounds_;
    std::shared_ptr<Exchange> exchange_;
  };

  std::deque<Begun> to_turn_;
};

}  // namespace syncopate::parallel
