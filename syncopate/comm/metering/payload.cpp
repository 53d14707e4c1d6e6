#include "syncopate/comm/metering/payload.h"

#include <array>
#include <cstddef>

namespace syncopate::comm {
namespace {

thread_local Payload current = Payload::kControl;

}  // namespace

const char* name_of(Payload payload) {
  static constexpr std::array<const char*, kPayloads> names = {"control", "gradients", "parameters",
                                                               "activations"};
  return names[static_cast<size_t>(payload)];
}

Carrying::Carrying(Payload payload) : before_(current) { current = payload; }
Carrying::~Carrying() { current = before_; }
Payload Carrying::now() { return current; }

}  // namespace syncopate::comm
