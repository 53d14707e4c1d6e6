#include "syncopate/emulation/switch.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <limits>
#include <system_error>

#include "syncopate/base/rng.h"
#include "syncopate/emulation/packet.h"

namespace syncopate::emulation {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// sched_attr of <linux/sched/types.h>, which cannot be included beside <sched.h>.
struct ScheduleAttributes {
  uint32_t size = sizeof(ScheduleAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;
};

int64_t read_clock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

int64_t steady_now() { return read_clock(CLOCK_MONOTONIC); }

void set_option(int socket, int level, int option, int value, bool needed) {
  if (::setsockopt(socket, level, option, &value, sizeof value) != 0 && needed)
    throw std::system_error(errno, std::generic_category(), "cannot set up a packet socket");
}

/// Takes what comes out of that interface, whole and not yet cut into segments, and puts packets into it.
Descriptor open_packet_socket(int interface) {
  Descriptor socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) throw std::system_error(errno, std::generic_category(), "cannot open a packet socket");
  constexpr int kBuffer = 64 << 20;
  set_option(socket.get(), SOL_PACKET, PACKET_VNET_HDR, 1, true);
  set_option(socket.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, true);
  set_option(socket.get(), SOL_PACKET, PACKET_QDISC_BYPASS, 1, false);
  set_option(socket.get(), SOL_SOCKET, SO_TIMESTAMPNS, 1, true);
  set_option(socket.get(), SOL_SOCKET, SO_RCVBUF, kBuffer, false);  // as far as the machine allows
  set_option(socket.get(), SOL_SOCKET, SO_SNDBUF, kBuffer, false);
  set_option(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, kBuffer, false);
  set_option(socket.get(), SOL_SOCKET, SO_SNDBUFFORCE, kBuffer, false);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = interface;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot bind a packet socket");
  return socket;
}

/// That this process may run on.
std::vector<int> own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

timespec time_until(int64_t then) {
  if (then == kNever) return {};
  const int64_t left = std::max<int64_t>(then - steady_now(), 0);
  return {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
}

/// When the kernel got it, by CLOCK_REALTIME; nothing of it: 0.
int64_t time_of(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SO_TIMESTAMPNS) continue;
    timespec at{};
    std::memcpy(&at, CMSG_DATA(part), sizeof at);
    return static_cast<int64_t>(at.tv_sec) * 1'000'000'000 + at.tv_nsec;
  }
  return 0;
}

}  // namespace

Switch::Switch(const network::Topology& topology, const std::vector<HostSide>& hosts)
    : hosts_(topology.size()),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      pairs_(static_cast<size_t>(hosts_) * static_cast<size_t>(hosts_)),
      started_(steady_now()),
      scratch_(kLargestFrame) {
  for (const HostSide& host : hosts) {
    sockets_.push_back(open_packet_socket(host.outer_interface));
    polled_.push_back({sockets_.back().get(), POLLIN, 0});
  }
  for (int from = 0; from < hosts_; ++from) {
    for (int to = 0; to < hosts_; ++to) {
      const double round_trip = topology.link(from, to).latency_ms + topology.link(to, from).latency_ms;
      pair(from, to).wire = Wire(topology.link(from, to), round_trip, mix_key(15, from, to));
    }
  }
}

Switch::~Switch() {
  stop_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  for (std::thread& thread : threads_) thread.join();
}

void Switch::start(int outer_pid) {
  std::vector<int> cores = own_cores();
  // Labs that run side by side sit on different cores where there are some.
  const auto turn = static_cast<std::ptrdiff_t>(static_cast<size_t>(outer_pid) % cores.size());
  std::rotate(cores.begin(), cores.begin() + turn, cores.end());
  // Signals are the main thread's.
  sigset_t all, old;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);
  std::promise<void> ready;
  threads_.emplace_back([this, &ready, core = cores.back()] {
    get_ahead(core);
    ready.set_value();
    run();
  });
  if (cores.size() > 1) {
    threads_.emplace_back([this, core = cores[cores.size() - 2]] {
      get_ahead(core);
      stand_by();
    });
  }
  ready.get_future().wait();
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void Switch::get_ahead(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  ::sched_setaffinity(0, sizeof set, &set);
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  const sched_param priority{.sched_priority = 10};
  if (::sched_setscheduler(0, SCHED_FIFO, &priority) == 0) {
    ahead_ = true;
    return;
  }
  // Without the right: a short slice is served soon after waking (Linux 6.12 and later).
  ScheduleAttributes attributes;
  attributes.runtime = 100'000;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
  ahead_ = ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), -15) == 0;
}

void Switch::run() {
  std::vector<pollfd> polled = polled_;
  polled.push_back({wake_.get(), POLLIN, 0});
  while (!stop_) {
    int64_t next;
    {
      const std::lock_guard lock(mutex_);
      next = deliver();
    }
    const timespec timeout = time_until(next);
    if (::ppoll(polled.data(), polled.size(), next == kNever ? nullptr : &timeout, nullptr) <= 0) continue;
    if (uint64_t times = 0; polled.back().revents != 0) [[maybe_unused]]
      const ssize_t size = ::read(wake_.get(), &times, sizeof times);
    const std::lock_guard lock(mutex_);
    take_from_all();
  }
}

void Switch::stand_by() {
  constexpr int64_t kNap = 500'000;
  pollfd wake{wake_.get(), POLLIN, 0};
  while (!stop_) {
    const timespec nap{0, kNap};
    ::ppoll(&wake, 1, &nap, nullptr);
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || steady_now() - last_turn_ < kNap) continue;
    take_from_all();
    deliver();
  }
}

void Switch::take_from_all() {
  last_turn_ = steady_now();
  if (::poll(polled_.data(), polled_.size(), 0) <= 0) return;
  const int64_t clock_offset = read_clock(CLOCK_REALTIME) - steady_now();
  for (int host = 0; host < hosts_; ++host) {
    if (polled_[static_cast<size_t>(host)].revents != 0) take_from(host, clock_offset);
  }
}

void Switch::take_from(int host, int64_t clock_offset) {
  constexpr int kAtOnce = 32;  // then those that are due have their turn
  const int socket = sockets_[static_cast<size_t>(host)].get();
  for (int k = 0; k < kAtOnce; ++k) {
    iovec part{scratch_.data(), scratch_.size()};
    alignas(cmsghdr) std::array<uint8_t, 128> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0) return;
    if (static_cast<size_t>(size) > scratch_.size()) continue;
    // As the kernel saw it come, so that a switch that wakes late does not make the way longer.
    const int64_t now = steady_now(), stamped = time_of(message);
    const int64_t at = stamped == 0 ? now : std::clamp(stamped - clock_offset, now - 100'000'000, now);
    accept(host, scratch_.data(), static_cast<size_t>(size), at);
  }
}

void Switch::accept(int from, const uint8_t* bytes, size_t size, int64_t at) {
  const auto packet = read_packet(bytes, size);
  if (!packet) return;
  const int64_t to = static_cast<int64_t>(packet->destination) - static_cast<int64_t>(address_of(0));
  if (to < 0 || to >= hosts_ || to == from) return;
  ++taken_;
  const int number = from * hosts_ + static_cast<int>(to);
  Pair& pair = pairs_[static_cast<size_t>(number)];
  const auto due = pair.wire.send(at, packet->wire_bytes, packet->segments);
  if (!due) return;
  InFlight flying{*due, std::make_unique_for_overwrite<uint8_t[]>(size), size};
  std::memcpy(flying.bytes.get(), bytes, size);
  const Mac mac = mac_of(static_cast<int>(to));
  std::copy(mac.begin(), mac.end(), flying.bytes.get() + kOffloadHeader);
  if (pair.in_flight.empty()) next_.push({*due, number});
  pair.in_flight.push_back(std::move(flying));
}

int64_t Switch::deliver() {
  int64_t now = steady_now();
  last_turn_ = now;
  while (!next_.empty()) {
    const Next first = next_.top();
    if (first.due > now) {
      now = steady_now();  // sending took time
      if (first.due > now) return first.due;
    }
    Pair& pair = pairs_[static_cast<size_t>(first.pair)];
    const InFlight& packet = pair.in_flight.front();
    const int to = first.pair % hosts_;
    const ssize_t sent =
        ::send(sockets_[static_cast<size_t>(to)].get(), packet.bytes.get(), packet.size, MSG_DONTWAIT);
    // No room just now: again soon, in order.
    constexpr int64_t kAgain = 50'000;
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return now + kAgain;
    lateness_.add(now - packet.due, static_cast<int64_t>(pair.wire.link().latency_ms * 1e6));
    pair.in_flight.pop_front();
    next_.pop();
    if (!pair.in_flight.empty()) next_.push({pair.in_flight.front().due, first.pair});
  }
  return kNever;
}

double Switch::round_trip_ms(int from, int to) const {
  return pair(from, to).wire.link().latency_ms + pair(to, from).wire.link().latency_ms;
}

network::Link Switch::link(int from, int to) const {
  const std::lock_guard lock(mutex_);
  return pair(from, to).wire.link();
}

void Switch::change(int from, int to, const network::Link& link) {
  const std::lock_guard lock(mutex_);
  ++changed_;
  Pair& changed = pair(from, to);
  std::vector<int64_t> dues;
  for (const InFlight& packet : changed.in_flight) dues.push_back(packet.due);
  changed.wire.change(link, link.latency_ms + pair(to, from).wire.link().latency_ms, steady_now(), dues);
  for (size_t k = 0; k < dues.size(); ++k) changed.in_flight[k].due = dues[k];
  // The way back is as long as before, but the round trip, which sizes its queue, is another.
  pair(to, from).wire.set_round_trip(round_trip_ms(to, from));
  next_ = {};
  for (size_t k = 0; k < pairs_.size(); ++k) {
    if (!pairs_[k].in_flight.empty()) next_.push({pairs_[k].in_flight.front().due, static_cast<int>(k)});
  }
  const uint64_t one = 1;  // what is due next may be due sooner
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Switch::cut(int from, int to) {
  const std::lock_guard lock(mutex_);
  ++changed_;
  pair(from, to).wire.cut();
}

LabReport Switch::report() const {
  // Packets that the kernel threw away because nobody took them; reading the count resets it.
  double missed_now = 0;
  for (const Descriptor& socket : sockets_) {
    tpacket_stats counts{};
    socklen_t size = sizeof counts;
    if (::getsockopt(socket.get(), SOL_PACKET, PACKET_STATISTICS, &counts, &size) == 0)
      missed_now += counts.tp_drops;
  }
  const std::lock_guard lock(mutex_);
  missed_ += missed_now;
  LabReport report;
  report.seconds = static_cast<double>(steady_now() - started_) * 1e-9;
  report.late_ms_max = lateness_.max_ms();
  report.lateness.assign(lateness_.counts().begin(), lateness_.counts().end());
  report.late = static_cast<double>(lateness_.beyond());
  report.taken = taken_;
  report.missed = missed_;
  report.changed = changed_;
  judge(report);
  for (int from = 0; from < hosts_; ++from) {
    for (int to = 0; to < hosts_; ++to) {
      if (from == to) continue;
      const Wire& wire = pair(from, to).wire;
      report.links.push_back({.from = from,
                              .to = to,
                              .bytes = wire.bytes(),
                              .dropped = wire.dropped(),
                              .busy_seconds = wire.busy_seconds(),
                              .latency_ms = wire.link().latency_ms,
                              .gbit = wire.link().gbit});
    }
  }
  return report;
}

}  // namespace syncopate::emulation
