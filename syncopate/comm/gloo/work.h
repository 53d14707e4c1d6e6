#pragma once

#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <memory>

#include "syncopate/comm/operations/waits.h"
#include "syncopate/comm/pending.h"

namespace c10d {
class Work;
}

namespace syncopate::comm {

/// A collective (waited for in slices) or a point-to-point operation (one single wait, because in Gloo a
/// wait that times out closes the connection). `after` runs when it is done.
Pending pending_over(std::shared_ptr<Waits> waits, const char* operation, c10::intrusive_ptr<c10d::Work> work,
                     bool collective, std::function<void()> after);

}  // namespace syncopate::comm
