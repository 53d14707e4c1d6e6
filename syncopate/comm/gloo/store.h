#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>

#include "syncopate/lifeline/lifeline.h"

namespace c10d {
class Store;
}

namespace syncopate::comm {

/// The lifeline's store in the form that c10d takes for its rendezvous.
c10::intrusive_ptr<c10d::Store> store_over(std::shared_ptr<lifeline::Lifeline> lifeline,
                                           std::chrono::milliseconds timeout);

}  // namespace syncopate::comm
