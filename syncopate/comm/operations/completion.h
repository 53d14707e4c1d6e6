#pragma once

#include <chrono>
#include <optional>

namespace syncopate::comm {

using Moment = std::chrono::steady_clock::time_point;

/// An operation often ends long before anybody waits for it. A transport that knows when says so inside of
/// Pending::Work::wait, in the thread that waits; whoever measures takes it right after. So decorators in
/// between need not pass it on.
void note_end(Moment ended);
/// What was noted in this thread since the last call; nothing: the end is not known.
std::optional<Moment> take_end();

}  // namespace syncopate::comm
