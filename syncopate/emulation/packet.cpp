#include "syncopate/emulation/packet.h"

#include <cstring>

namespace syncopate::emulation {
namespace {

/// virtio_net_hdr of <linux/virtio_net.h>, which C++ cannot read.
struct OffloadHeader {
  uint8_t flags, gso_type;
  uint16_t hdr_len, gso_size, csum_start, csum_offset;
};
constexpr unsigned kGsoNone = 0, kGsoTcp4 = 1, kGsoEcn = 0x80;

uint32_t big_endian(const uint8_t* bytes, int count) {
  uint32_t value = 0;
  for (int k = 0; k < count; ++k) value = value << 8 | bytes[k];
  return value;
}

}  // namespace

std::optional<Packet> read_packet(const uint8_t* bytes, size_t size) {
  static_assert(sizeof(OffloadHeader) == kOffloadHeader);
  constexpr uint32_t kIpv4 = 0x0800;
  constexpr size_t kLeastIp = 20, kLeastTcp = 20, kUdp = 8;
  if (size < kOffloadHeader + kEthernetHeader + kLeastIp) return std::nullopt;
  OffloadHeader offload{};
  std::memcpy(&offload, bytes, sizeof offload);
  const uint8_t* const frame = bytes + kOffloadHeader;
  if (big_endian(frame + 12, 2) != kIpv4) return std::nullopt;
  const uint8_t* const ip = frame + kEthernetHeader;
  const size_t ip_bytes = size - kOffloadHeader - kEthernetHeader;
  Packet packet;
  packet.destination = big_endian(ip + 16, 4);
  packet.wire_bytes = static_cast<int64_t>(ip_bytes);
  const unsigned kind = offload.gso_type & ~kGsoEcn;
  if (kind == kGsoNone || offload.gso_size == 0) return packet;
  // One packet for the kernel, several on the wire: each has the headers again.
  const size_t ip_header = static_cast<size_t>(ip[0] & 0x0f) * 4;
  size_t headers = ip_header + kUdp;
  if (kind == kGsoTcp4) {
    if (ip_bytes < ip_header + kLeastTcp) return std::nullopt;
    headers = ip_header + static_cast<size_t>(ip[ip_header + 12] >> 4) * 4;
  }
  if (ip_bytes <= headers) return packet;
  const size_t payload = ip_bytes - headers;
  const size_t segments = (payload + offload.gso_size - 1) / offload.gso_size;
  packet.segments = static_cast<int>(segments);
  packet.wire_bytes = static_cast<int64_t>(payload + segments * headers);
  return packet;
}

}  // namespace syncopate::emulation
