#include "syncopate/lifeline/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/lifeline/proof.h"

namespace syncopate::lifeline {

std::chrono::milliseconds beat_interval(std::chrono::milliseconds timeout) {
  return std::clamp(timeout / 20, std::chrono::milliseconds(20), std::chrono::milliseconds(500));
}

std::chrono::milliseconds standstill(std::chrono::milliseconds beat) {
  return std::min(5 * beat, kSilence / 2);
}

std::string Introduction::worker_proof(const std::string& key) const {
  return prove(key, fmt::format("worker {} {} {} {}", of_server, of_worker, rank, size));
}

std::string Introduction::server_proof(const std::string& key) const {
  return prove(key, fmt::format("server {} {}", of_worker, of_server));
}

Packer pack_proof(const std::string& proof, const Claims& claims) {
  Packer frame(FrameKind::kProof);
  frame.text(proof).number(static_cast<int64_t>(claims.size()));
  for (const Claim& claim : claims) frame.text(claim.name).text(claim.value);
  return frame;
}

Claims unpack_claims(Unpacker& fields) {
  Claims claims;
  for (int64_t left = fields.number(); left > 0; --left) {
    std::string name = fields.text();
    claims.push_back({std::move(name), fields.text()});
  }
  return claims;
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
