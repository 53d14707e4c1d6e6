#include "syncopate/emulation/netlink.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

namespace syncopate::emulation {
namespace {

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

/// A message under construction: header, the family's own header, attributes.
class Netlink::Request {
 public:
  template <typename Body>
  Request(uint16_t type, uint16_t flags, const Body& body, const char* what) : what_(what) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST | NLM_F_ACK);
    append(&header, sizeof header);
    append(&body, sizeof body);
    align();
  }
  void attribute(int type, const void* data, size_t size) {
    const size_t start = open(type);
    append(data, size);
    close(start);
  }
  void attribute(int type, uint32_t value) { attribute(type, &value, sizeof value); }
  void attribute(int type, const std::string& text) { attribute(type, text.c_str(), text.size() + 1); }
  size_t open(int type) {
    const size_t start = used_;
    rtattr header{};
    header.rta_type = static_cast<uint16_t>(type);
    append(&header, sizeof header);
    return start;
  }
  void close(size_t start) {
    const auto length = static_cast<uint16_t>(used_ - start);
    std::memcpy(bytes_.data() + start, &length, sizeof length);
    align();
  }
  void append(const void* data, size_t size) {
    if (used_ + size > bytes_.size()) fail(EMSGSIZE, what_);
    std::memcpy(bytes_.data() + used_, data, size);
    used_ += size;
  }
  std::string_view finish(uint32_t sequence) {
    nlmsghdr header{};
    std::memcpy(&header, bytes_.data(), sizeof header);
    header.nlmsg_len = static_cast<uint32_t>(used_);
    header.nlmsg_seq = sequence;
    std::memcpy(bytes_.data(), &header, sizeof header);
    return {reinterpret_cast<const char*>(bytes_.data()), used_};
  }
  const char* what() const { return what_; }

 private:
  void align() { used_ = NLMSG_ALIGN(used_); }
  std::array<uint8_t, 1024> bytes_{};
  size_t used_ = 0;
  const char* what_;
};

Netlink::Netlink() : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {
  if (!socket_.open()) fail(errno, "cannot open a netlink socket");
}

void Netlink::perform(Request& request) {
  const std::string_view bytes = request.finish(++sequence_);
  if (::send(socket_.get(), bytes.data(), bytes.size(), 0) < 0) fail(errno, request.what());
  std::array<uint8_t, 8192> answer{};
  const ssize_t size = ::recv(socket_.get(), answer.data(), answer.size(), 0);
  if (size < 0) fail(errno, request.what());
  nlmsghdr header{};
  nlmsgerr result{};
  if (static_cast<size_t>(size) < sizeof header + sizeof result) fail(EBADMSG, request.what());
  std::memcpy(&header, answer.data(), sizeof header);
  std::memcpy(&result, answer.data() + NLMSG_HDRLEN, sizeof result);
  if (header.nlmsg_type != NLMSG_ERROR) fail(EBADMSG, request.what());
  if (result.error != 0) fail(-result.error, request.what());
}

void Netlink::add_veth(const VethPair& pair) {
  const ifinfomsg here{};
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, here, "cannot add a pair of virtual interfaces");
  const auto mtu = static_cast<uint32_t>(pair.mtu);
  request.attribute(IFLA_IFNAME, pair.name);
  request.attribute(IFLA_ADDRESS, pair.mac.data(), pair.mac.size());
  request.attribute(IFLA_MTU, mtu);
  const size_t info = request.open(IFLA_LINKINFO);
  request.attribute(IFLA_INFO_KIND, std::string("veth"));
  const size_t data = request.open(IFLA_INFO_DATA);
  const size_t peer = request.open(VETH_INFO_PEER);
  request.append(&here, sizeof here);
  request.attribute(IFLA_IFNAME, pair.peer_name);
  request.attribute(IFLA_MTU, mtu);
  request.attribute(IFLA_NET_NS_FD, static_cast<uint32_t>(pair.peer_namespace));
  request.close(peer);
  request.close(data);
  request.close(info);
  perform(request);
}

void Netlink::bring_up(int interface, bool without_arp) {
  ifinfomsg link{};
  link.ifi_index = interface;
  link.ifi_flags = static_cast<unsigned>(without_arp ? IFF_UP | IFF_NOARP : IFF_UP);
  link.ifi_change = link.ifi_flags;
  Request request(RTM_NEWLINK, 0, link, "cannot bring an interface up");
  perform(request);
}

void Netlink::add_address(int interface, uint32_t ipv4, int prefix_length) {
  ifaddrmsg address{};
  address.ifa_family = AF_INET;
  address.ifa_prefixlen = static_cast<uint8_t>(prefix_length);
  address.ifa_index = static_cast<uint32_t>(interface);
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, address, "cannot set an address");
  const uint32_t wire = htonl(ipv4);
  request.attribute(IFA_LOCAL, wire);
  request.attribute(IFA_ADDRESS, wire);
  request.attribute(IFA_FLAGS, IFA_F_NOPREFIXROUTE);  // the route is added with its settings
  perform(request);
}

void Netlink::set_route(const Route& route) {
  rtmsg message{};
  message.rtm_family = AF_INET;
  message.rtm_dst_len = static_cast<uint8_t>(route.prefix_length);
  message.rtm_table = RT_TABLE_MAIN;
  message.rtm_protocol = RTPROT_STATIC;
  message.rtm_scope = RT_SCOPE_LINK;
  message.rtm_type = RTN_UNICAST;
  Request request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, message, "cannot set a route");
  request.attribute(RTA_DST, htonl(route.network));
  request.attribute(RTA_OIF, static_cast<uint32_t>(route.interface));
  const size_t metrics = request.open(RTA_METRICS);
  if (!route.congestion_control.empty()) request.attribute(RTAX_CC_ALGO, route.congestion_control);
  if (route.first_window > 0) {
    request.attribute(RTAX_INITCWND, static_cast<uint32_t>(route.first_window));
    request.attribute(RTAX_INITRWND, static_cast<uint32_t>(route.first_window));
  }
  request.close(metrics);
  perform(request);
}

void Netlink::send_single_segments(int interface, bool single) {
  ifinfomsg link{};
  link.ifi_index = interface;
  Request request(RTM_NEWLINK, 0, link, "cannot set how packets are cut");
  request.attribute(IFLA_GSO_MAX_SEGS, single ? 1u : 65535u);
  perform(request);
}

}  // namespace syncopate::emulation
