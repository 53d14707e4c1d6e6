#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "syncopate/base/descriptor.h"

namespace syncopate::emulation {

using Mac = std::array<uint8_t, 6>;

/// The few requests to the kernel's network configuration (rtnetlink) that a lab needs. They concern the
/// network namespace in which this was made. All throw std::system_error.
class Netlink {
 public:
  Netlink();

  struct VethPair {
    std::string name;       ///< of the end here
    Mac mac{};              ///< of the end here
    std::string peer_name;  ///< of the end in the other namespace
    int peer_namespace = -1;
    int mtu = 1500;
  };
  void add_veth(const VethPair& pair);
  /// Up; without address resolution if so asked: every packet is then sent to the device's own address.
  void bring_up(int interface, bool without_arp);
  void add_address(int interface, uint32_t ipv4, int prefix_length);
  /// Where packets to a network go, and what TCP makes of it.
  struct Route {
    int interface = 0;
    uint32_t network = 0;
    int prefix_length = 32;
    std::string congestion_control{};  ///< empty: the kernel's default
    int first_window = 0;  ///< packets that a connection may send at first; 0: the kernel's default
  };
  void set_route(const Route& route);
  /// Whether packets leave as single segments, instead of up to 64 KB that someone else cuts.
  void send_single_segments(int interface, bool single);

 private:
  class Request;
  void perform(Request& request);
  Descriptor socket_;
  uint32_t sequence_ = 0;
};

}  // namespace syncopate::emulation
