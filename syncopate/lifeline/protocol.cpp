#include "syncopate/lifeline/protocol.h"

#include <algorithm>

namespace syncopate::lifeline {

std::chrono::milliseconds beat_interval(std::chrono::milliseconds timeout) {
  return std::clamp(timeout / 20, std::chrono::milliseconds(20), std::chrono::milliseconds(500));
}

Packer pack(const Failure& failure) {
  Packer frame(FrameKind::kFailure);
  frame.number(failure.rank).number(static_cast<int64_t>(failure.cause)).number(failure.exit_code);
  return frame.text(failure.activity).text(failure.sentence);
}

Failure unpack_failure(Unpacker& fields) {
  Failure failure;
  failure.rank = static_cast<int>(fields.number());
  failure.cause = static_cast<Cause>(fields.number());
  failure.exit_code = static_cast<int>(fields.number());
  failure.activity = fields.text();
  failure.sentence = fields.text();
  return failure;
}

Packer pack(int rank, const Status& status) {
  Packer frame(FrameKind::kStatus);
  return frame.number(rank).number(status.step).text(status.phase);
}

}  // namespace syncopate::lifeline
