#include "syncopate/run/probe/link_probe.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/lifeline/proof.h"
#include "syncopate/run/probe/probe_control.h"
#include "syncopate/run/probe/settling.h"

namespace syncopate::run {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr double kNear =
    0.020;  ///< seconds of a round trip: such links fill at once, and take a core to fill
constexpr double kNoise = 0.05;  ///< directions that differ by less are the same
constexpr size_t kChunk = size_t{256} << 10;

/// To four digits: more was not measured.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

/// Both connections to another rank.
struct Peer {
  std::unique_ptr<Control> control;
  lifeline::Socket data;
  double round_trip = 0;  ///< the shortest so far; 0: none
};

/// What a pair measured, in the terms of its lower rank.
struct Measured {
  int low = 0, high = 0;
  double round_trip = 0;
  double there = 0, back = 0;  ///< bytes of payload a second
  double spread = 0;
};

/// Lets as many pairs measure at once as there are cores to fill links from, where hosts share a machine: a
/// semaphore on the rendezvous' store.
class Turns {
 public:
  Turns(lifeline::Lifeline& line, int at_once, milliseconds timeout)
      : line_(line), at_once_(at_once), timeout_(timeout) {}
  void take() {
    const int64_t number = line_.add("probe/turns", 1);
    if (number > at_once_) line_.get(fmt::format("probe/over/{}", number - at_once_), timeout_);
  }
  void give_back() { line_.set(fmt::format("probe/over/{}", line_.add("probe/overs", 1)), "yes"); }

 private:
  lifeline::Lifeline& line_;
  int at_once_;
  milliseconds timeout_;
};

/// This rank's part of the probe.
class Prober {
 public:
  Prober(lifeline::Lifeline& line, const LinkProbeOptions& options)
      : line_(line),
        options_(options),
        listener_(lifeline::listen_at({options.address.empty() ? line.local().host : options.address, 0})),
        roll_(call_roll(line, options.seat, lifeline::local_address(listener_), options.timeout)),
        turns_(line, at_once(), std::chrono::hours(1)) {
    if (!options.measures) roll_.pairs.clear();
    for (const Pair& pair : roll_.pairs) {
      if (pair.low == rank() || pair.high == rank()) mine_.push_back(pair);
    }
    // A pair's turn: the budget over the rounds, but long enough for the start of TCP on a long line.
    const auto hosts = static_cast<double>(roll_.first.size());
    bound_ = std::max(1.0, options.seconds / std::max(1.0, hosts - 1));
  }

  std::optional<MeasuredLinks> run() {
    meet();
    ping_all();
    // Emulated links share nothing but cores, and long ones mostly wait: two at a time. Elsewhere a host has
    // one interface.
    const int at_once = roll_.seats.size() > 1 && one_machine() ? 2 : 1;
    std::vector<std::future<void>> others;
    for (int k = 1; k < at_once; ++k)
      others.push_back(std::async(std::launch::async, [this] { work_off(); }));
    std::exception_ptr failure;
    try {
      work_off();
    } catch (...) {
      failure = std::current_exception();
    }
    for (auto& other : others) {
      try {
        other.get();
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
    nlohmann::json row = nlohmann::json::array();
    for (const Measured& each : measured_)
      row.push_back({each.low, each.high, each.round_trip, each.there, each.back, each.spread});
    line_.set(fmt::format("probe/row/{}", rank()), row.dump());
    if (rank() != 0) {
      line_.get("probe/done", std::chrono::hours(1));
      return std::nullopt;
    }
    MeasuredLinks all = collect();
    line_.set("probe/done", "yes");
    return all;
  }

 private:
  /// Measures this rank's pairs, one after the other.
  void work_off() {
    while (true) {
      const size_t next = taken_++;
      if (next >= mine_.size()) return;
      try {
        const auto measured = measure(mine_[next]);
        const std::lock_guard lock(mutex_);
        if (measured) measured_.push_back(*measured);
        ++done_;
        if (rank() == 0 && options_.progress)
          options_.progress(done_, static_cast<int>(mine_.size()), name(mine_[next]));
      } catch (...) {
        taken_ = mine_.size();  // the other thread begins no more
        throw;
      }
    }
  }

  bool one_machine() const {
    return std::all_of(roll_.seats.begin(), roll_.seats.end(),
                       [&](const Seat& seat) { return seat.machine == roll_.seats.front().machine; });
  }
  int rank() const { return line_.rank(); }
  std::string name(const Pair& pair) const {
    return fmt::format("{} - {}", roll_.seats[static_cast<size_t>(pair.low)].host,
                       roll_.seats[static_cast<size_t>(pair.high)].host);
  }
  Patience patience(const std::string& what) const { return {line_, options_.timeout, what}; }

  /// How many near pairs at once: hosts with cores of their own do not disturb each other.
  static int at_once() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2); }
  bool shares_machine(const Pair& pair) const {
    const std::string& machine = roll_.seats[static_cast<size_t>(pair.low)].machine;
    return std::count_if(roll_.first.begin(), roll_.first.end(), [&](int first) {
             return roll_.seats[static_cast<size_t>(first)].machine == machine;
           }) > 1;
  }

  static constexpr size_t kHello = 32 + 1 + 8;
  std::string hello(char kind) const { return fmt::format("{}{}{:08}", roll_.key, kind, rank()); }

  /// Lower ranks connect to higher ones.
  void meet() {
    Patience waits = patience("the ranks of the probe do not reach each other");
    const auto deadline = Clock::now() + options_.timeout;
    size_t missing = 0;
    for (const Pair& pair : mine_) {
      if (pair.high == rank()) missing += 2;
      if (pair.low != rank()) continue;
      const auto& address = roll_.addresses[static_cast<size_t>(pair.high)];
      lifeline::Socket control = lifeline::connect_to(address, deadline);
      lifeline::Socket data = lifeline::connect_to(address, deadline);
      introduce(control, 'c');
      introduce(data, 'd');
      add(pair.high, 'c', std::move(control));
      add(pair.high, 'd', std::move(data));
    }
    // Strangers may connect and say nothing: whoever greets first is served first.
    struct Guest {
      lifeline::Socket socket;
      std::string text{};
    };
    std::vector<Guest> guests;
    while (missing > 0) {
      std::vector<pollfd> fds{{listener_.fd(), POLLIN, 0}};
      for (const Guest& guest : guests) fds.push_back({guest.socket.fd(), POLLIN, 0});
      waits.wait(fds);
      while (auto socket = lifeline::accept_from(listener_)) guests.push_back({*std::move(socket)});
      std::erase_if(guests, [&](Guest& guest) {
        std::array<char, kHello> bytes{};
        const ssize_t more =
            ::recv(guest.socket.fd(), bytes.data(), kHello - guest.text.size(), MSG_DONTWAIT);
        if (more < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        if (more <= 0) return true;
        guest.text.append(bytes.data(), static_cast<size_t>(more));
        if (guest.text.size() < kHello) return false;
        if (!lifeline::proves(guest.text.substr(0, 32), roll_.key)) return true;
        add(std::stoi(guest.text.substr(33)), guest.text[32], std::move(guest.socket));
        --missing;
        return true;
      });
    }
  }

  void introduce(const lifeline::Socket& socket, char kind) const {
    const std::string text = hello(kind);
    if (::send(socket.fd(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
      throw CommError("the probe cannot greet another rank: {}", std::strerror(errno));
  }

  void add(int other, char kind, lifeline::Socket socket) {
    Peer& peer = peers_[other];
    if (kind == 'c') {
      peer.control = std::make_unique<Control>(
          std::move(socket),
          fmt::format("rank {} on {}", other, roll_.seats[static_cast<size_t>(other)].host));
    } else {
      // Asks for the link's rate, not for how one algorithm grows on it: others take half a minute to fill a
      // long line. Where the system has no BBR, its own must do.
      constexpr const char* kFills = "bbr";
      (void)!::setsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, kFills, std::strlen(kFills));
      peer.data = std::move(socket);
    }
  }

  /// Round trips to all at the same time: rough where cores are busy, and as good as any over a long line.
  void ping_all() {
    constexpr int kPings = 4;  // the first finds some still busy with others
    Patience waits = patience("a link does not answer");
    struct State {
      Peer* peer;
      bool low;
      int answered = 0;
      bool over = false;
      Stopwatch watch{};
    };
    std::vector<State> states;
    for (const Pair& pair : mine_) {
      const bool low = pair.low == rank();
      states.push_back({.peer = &peers_.at(low ? pair.high : pair.low), .low = low});
    }
    for (State& each : states) {
      each.watch.restart();
      if (each.low) each.peer->control->send({.kind = Message::kPing}, waits);
    }
    while (!std::all_of(states.begin(), states.end(), [](const State& each) { return each.over; })) {
      std::vector<pollfd> fds;
      for (const State& each : states) fds.push_back({each.over ? -1 : each.peer->control->fd(), POLLIN, 0});
      waits.wait(fds);
      for (State& each : states) {
        while (!each.over) {
          const auto message = each.peer->control->look();
          if (!message) break;
          if (!each.low) {
            each.over = message->kind == Message::kEnough;
            if (!each.over) each.peer->control->send({.kind = Message::kPong}, waits);
            continue;
          }
          note_round_trip(*each.peer, each.watch.seconds());
          each.over = ++each.answered == kPings;
          each.watch.restart();
          each.peer->control->send({.kind = each.over ? Message::kEnough : Message::kPing}, waits);
        }
      }
    }
  }

  static void note_round_trip(Peer& peer, double seconds) {
    peer.round_trip = peer.round_trip > 0 ? std::min(peer.round_trip, seconds) : seconds;
  }

  std::optional<Measured> measure(const Pair& pair) {
    Peer& peer = peers_.at(pair.low == rank() ? pair.high : pair.low);
    Control& control = *peer.control;
    Patience waits = patience(fmt::format("the link {} does not answer", name(pair)));
    // The partner may be busy with others, whom the timeout does not count against it.
    Patience for_turn{line_, options_.timeout + milliseconds(std::llround(2e3 * options_.seconds)),
                      fmt::format("the link {} does not answer", name(pair))};
    if (pair.high == rank()) {
      Message message = control.receive(for_turn);
      check(message.kind == Message::kReady, "a pair begins when both are ready");
      control.send({.kind = Message::kReady}, waits);
      while (message.kind != Message::kGo) {
        message = control.receive(waits);
        if (message.kind == Message::kPing) control.send({.kind = Message::kPong}, waits);
      }
      peer.round_trip = message.rate;
      stream(peer, pair, waits);
      return std::nullopt;
    }
    control.send({.kind = Message::kReady}, waits);
    control.receive(for_turn);
    const bool near = peer.round_trip < kNear;
    const bool takes_turns = near && shares_machine(pair);
    if (takes_turns) turns_.take();
    // Over a long line the round trips that were taken at once with others' are good enough.
    const int pings = near ? 40 : peer.round_trip < 0.08 ? 8 : 0;
    for (int k = 0; k < pings; ++k) {
      const Stopwatch watch;
      control.send({.kind = Message::kPing}, waits);
      control.receive(waits);
      note_round_trip(peer, watch.seconds());
    }
    control.send({.kind = Message::kGo, .rate = peer.round_trip}, waits);
    const auto [there, back] = stream(peer, pair, waits);
    if (takes_turns) turns_.give_back();
    return Measured{.low = pair.low,
                    .high = pair.high,
                    .round_trip = peer.round_trip,
                    .there = there.rate,
                    .back = pair.inside ? there.rate : back.rate,
                    .spread = std::max(there.spread, back.spread)};
  }

  struct Flows {
    Message out, in;  ///< kDone of both directions, seen from this rank
  };

  /// Sends and receives as fast as it goes until both directions have settled. Memory (a pair inside of a
  /// host) is measured one way: both at once would share the cores.
  Flows stream(Peer& peer, const Pair& pair, Patience& waits) {
    const bool low = pair.low == rank();
    const double slot = std::clamp(peer.round_trip / 2, 0.05, 0.25);
    Settling settling(std::max(4, static_cast<int>(std::ceil(0.35 / slot))));
    // To fill a long line takes a dozen round trips; then it must be seen to have settled.
    const double bound = pair.inside ? 2 : std::max({bound_, 16 * peer.round_trip + 1, 20 * slot});
    const std::vector<char> zeros(kChunk);
    std::vector<char> scratch(size_t{1} << 20);
    bool sending = !pair.inside || low;
    const bool receiving = !pair.inside || !low;
    Flows flows;
    bool told = !sending, done = !receiving;  // the other's done has come; ours has been sent
    const Stopwatch since_start;
    std::optional<Stopwatch> in_slot;
    double bytes = 0;
    while (!told || !done) {
      std::vector<pollfd> fds{{peer.control->fd(), POLLIN, 0}, {peer.data.fd(), 0, 0}};
      if (sending) fds[1].events |= POLLOUT;
      if (receiving) fds[1].events |= POLLIN;
      if (fds[1].events == 0) fds[1].fd = -1;
      waits.wait(fds, in_slot ? milliseconds(5) : Patience::kLook);
      if (receiving && (fds[1].revents & POLLIN) != 0) {
        // The kernel counts and drops: what comes is not looked at.
        const ssize_t got = ::recv(peer.data.fd(), scratch.data(), scratch.size(), MSG_DONTWAIT | MSG_TRUNC);
        if (got > 0 && !done) {
          if (!in_slot) in_slot.emplace();
          bytes += static_cast<double>(got);
        }
      }
      if (sending && (fds[1].revents & POLLOUT) != 0)
        (void)!::send(peer.data.fd(), zeros.data(), zeros.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if ((fds[1].revents & (POLLERR | POLLHUP)) != 0)
        throw CommError("the link {} broke while it was measured", name(pair));
      if (!done && in_slot && in_slot->seconds() >= slot) {
        settling.add(bytes / in_slot->restart());
        bytes = 0;
      }
      if (!done && (settling.settled() || since_start.seconds() > bound)) {
        done = true;  // but reads on: acknowledgements for what this rank sends ride on the data
        flows.in = {.kind = Message::kDone,
                    .rate = settling.rate(),
                    .spread = settling.settled() ? 0 : settling.spread()};
        peer.control->send(flows.in, waits);
      }
      if (const auto message = peer.control->look()) {
        check(message->kind == Message::kDone, "a flow ends when it has settled");
        flows.out = *message;
        told = true;
        sending = false;
      }
    }
    // What still waits to be sent is dropped, so that the link is free for the next.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(peer.data.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    // Nobody closes while the other still streams.
    peer.control->send({.kind = Message::kEnough}, waits);
    peer.control->receive(waits);
    peer.data.close();
    return flows;
  }

  MeasuredLinks collect() {
    MeasuredLinks all;
    all.seats = roll_.hosts;
    all.one_machine = one_machine();
    std::vector<network::Host> hosts;
    std::map<std::string, int> names;
    for (const int first : roll_.first) {
      const Seat& seat = roll_.seats[static_cast<size_t>(first)];
      const int times = ++names[seat.host];  // machines may have the same name
      hosts.push_back({.name = times == 1 ? seat.host : fmt::format("{}-{}", seat.host, times),
                       .region = seat.region,
                       .devices = static_cast<int>(std::count(roll_.hosts.begin(), roll_.hosts.end(),
                                                              static_cast<int>(hosts.size())))});
    }
    const size_t n = hosts.size();
    std::vector<network::Link> links(n * n, network::kMemory);
    for (int rank = 0; rank < line_.size(); ++rank) {
      for (const nlohmann::json& each :
           nlohmann::json::parse(line_.get(fmt::format("probe/row/{}", rank), std::chrono::hours(1)))) {
        const auto a = static_cast<size_t>(roll_.hosts[each.at(0).get<size_t>()]);
        const auto b = static_cast<size_t>(roll_.hosts[each.at(1).get<size_t>()]);
        const double payload = a == b ? 1 : network::kPayloadShare;
        double there = gbit_on_wire(each.at(3), payload, hosts[a].name, hosts[b].name);
        double back = gbit_on_wire(each.at(4), payload, hosts[b].name, hosts[a].name);
        if (std::abs(there - back) < kNoise * std::max(there, back))
          there = back = rounded((there + back) / 2);
        const double latency = rounded(1e3 * each.at(2).get<double>() / 2);
        links[a * n + b] = {.latency_ms = latency, .gbit = there};
        links[b * n + a] = {.latency_ms = latency, .gbit = back};
        if (each.at(5).get<double>() >= Settling::kAlike)
          all.unsteady.push_back(fmt::format("{} - {}", hosts[a].name, hosts[b].name));
      }
    }
    all.topology = network::Topology("measured", std::move(hosts), std::move(links));
    return all;
  }

  lifeline::Lifeline& line_;
  const LinkProbeOptions& options_;
  lifeline::Socket listener_;
  Roll roll_;
  Turns turns_;
  std::vector<Pair> mine_;
  std::map<int, Peer> peers_;
  std::atomic<size_t> taken_{0};  ///< of mine_, that some thread has begun
  std::mutex mutex_;              ///< guards what follows
  std::vector<Measured> measured_;
  int done_ = 0;
  double bound_ = 1;
};

}  // namespace

double gbit_on_wire(double bytes_per_second, double payload_share, const std::string& from,
                    const std::string& to) {
  if (!(bytes_per_second > 0)) {
    throw CommError(
        "nothing came from {} to {} while their link was measured; they can talk, so do large packets pass "
        "(MTU)?",
        from, to);
  }
  return rounded(8e-9 * bytes_per_second / payload_share);
}

std::optional<MeasuredLinks> probe_links(lifeline::Lifeline& lifeline, const LinkProbeOptions& options) {
  return Prober(lifeline, options).run();
}

}  // namespace syncopate::run
