#pragma once

#include <cstdint>

namespace syncopate::sim {

/// What a step's time is counted as.
enum class Account : uint8_t { kCompute, kExchange, kData };

/// One thing that an actor does, and then goes on to the next.
struct Action {
  enum class Kind : uint8_t { kCompute, kStart, kWait, kLock, kUnlock, kMeet, kMark };
  Kind kind = Kind::kMark;
  Account account = Account::kCompute;  ///< of kCompute; waits are exchange
  int operation = -1;                   ///< of kStart, kWait; the number of the lock, or of the meeting
  double seconds = 0;
  bool asleep = false;  ///< of kCompute: time passes, and no core is used
  int actors = 0;       ///< of kMeet: nobody goes on before so many are there
};

}  // namespace syncopate::sim
