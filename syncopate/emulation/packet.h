#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace syncopate::emulation {

/// What a packet socket with PACKET_VNET_HDR puts before each frame.
inline constexpr size_t kOffloadHeader = 10;
inline constexpr size_t kEthernetHeader = 14;
/// 64 KB of segments that the kernel sends as one, and their headers.
inline constexpr size_t kLargestFrame = kOffloadHeader + kEthernetHeader + 65536 + 256;

struct Packet {
  uint32_t destination = 0;  ///< IPv4
  int64_t wire_bytes = 0;    ///< IP's and what is in it, headers of every segment included
  int segments = 1;
};

/// Reads an offload header and the frame behind it; nothing for what is not IPv4.
std::optional<Packet> read_packet(const uint8_t* bytes, size_t size);

}  // namespace syncopate::emulation
