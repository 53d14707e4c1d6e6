#include "syncopate/run/link_probe.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/lifeline/proof.h"

namespace syncopate::run {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;

constexpr double kNear =
    0.020;  ///< seconds of a round trip: such links fill at once, and take a core to fill
constexpr double kAlike = 0.04;            ///< of slots of a rate that has settled
constexpr double kNoise = 0.05;            ///< directions that differ by less are the same
constexpr auto kLook = milliseconds(100);  ///< how often a wait looks whether the run has failed
constexpr size_t kChunk = size_t{256} << 10;

/// What the two ends of a pair tell each other beside the flow of bytes that is measured.
struct Message {
  enum Kind : int64_t { kPing, kPong, kEnough, kReady, kGo, kDone };
  int64_t kind = kPing;
  double rate = 0;    ///< kDone: bytes a second that came in. kGo: seconds of a round trip
  double spread = 0;  ///< kDone: how much the rate varied
};

/// Waits on sockets and gives up when the run has failed or nothing has come for too long.
class Patience {
 public:
  Patience(lifeline::Lifeline& line, milliseconds timeout, std::string what)
      : line_(line), timeout_(timeout), what_(std::move(what)) {}
  void moved() { last_ = Clock::now(); }
  /// poll(2) for at most `most`.
  void wait(std::vector<pollfd>& fds, milliseconds most = kLook) {
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(0, most.count())));
    if (ready > 0) return moved();
    line_.check();
    if (Clock::now() - last_ > timeout_) {
      throw CommError("{}: nothing came for {:.0f} s; is the link up, and do firewalls let TCP through?",
                      what_, std::chrono::duration<double>(timeout_).count());
    }
  }

 private:
  lifeline::Lifeline& line_;
  milliseconds timeout_;
  std::string what_;
  Clock::time_point last_ = Clock::now();
};

/// A connection for messages.
class Control {
 public:
  Control(lifeline::Socket socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {}
  int fd() const { return socket_.fd(); }

  void send(const Message& message, Patience& patience) {
    const char* at = reinterpret_cast<const char*>(&message);
    size_t left = sizeof message;
    while (left > 0) {
      const ssize_t sent = ::send(fd(), at, left, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        at += sent;
        left -= static_cast<size_t>(sent);
      } else if (errno == EAGAIN) {
        std::vector<pollfd> fds{{fd(), POLLOUT, 0}};
        patience.wait(fds);
      } else if (errno != EINTR) {
        lost(std::strerror(errno));
      }
    }
  }

  /// What has come, if a whole message has.
  std::optional<Message> look() {
    while (got_ < sizeof in_) {
      const ssize_t got = ::recv(fd(), reinterpret_cast<char*>(&in_) + got_, sizeof in_ - got_, MSG_DONTWAIT);
      if (got == 0) lost("it closed the connection");
      if (got < 0 && errno == EAGAIN) return std::nullopt;
      if (got < 0 && errno != EINTR) lost(std::strerror(errno));
      if (got > 0) got_ += static_cast<size_t>(got);
    }
    got_ = 0;
    return in_;
  }

  Message receive(Patience& patience) {
    while (true) {
      if (const auto message = look()) return *message;
      std::vector<pollfd> fds{{fd(), POLLIN, 0}};
      patience.wait(fds);
    }
  }

 private:
  [[noreturn]] void lost(const char* why) const { throw CommError("the probe lost {}: {}", name_, why); }

  lifeline::Socket socket_;
  std::string name_;
  Message in_{};
  size_t got_ = 0;
};

/// Both connections to another rank.
struct Peer {
  std::unique_ptr<Control> control;
  lifeline::Socket data;
  double round_trip = 0;  ///< the shortest so far; 0: none
};

struct Pair {
  int low = 0, high = 0;  ///< ranks
  bool inside = false;    ///< both on one host
};

/// What a pair measured, in the terms of its lower rank.
struct Measured {
  int low = 0, high = 0;
  double round_trip = 0;
  double there = 0, back = 0;  ///< bytes of payload a second
  double spread = 0;
};

/// Everybody's place in the probe, as rank 0 has put it together.
struct Roll {
  std::vector<Seat> seats;
  std::vector<lifeline::Address> addresses;
  std::string key;

  std::vector<int> hosts;  ///< of each rank
  std::vector<int> first;  ///< rank on each host
  std::vector<Pair> pairs;
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

Roll call_roll(lifeline::Lifeline& line, const LinkProbeOptions& options, const lifeline::Address& mine) {
  const Json self{{"host", options.seat.host},
                  {"region", options.seat.region},
                  {"machine", options.seat.machine},
                  {"address", mine.host},
                  {"port", mine.port}};
  line.set(fmt::format("probe/rank/{}", line.rank()), self.dump());
  if (line.rank() == 0) {
    Json all = Json::array();
    for (int rank = 0; rank < line.size(); ++rank)
      all.push_back(Json::parse(line.get(fmt::format("probe/rank/{}", rank), options.timeout)));
    line.set("probe/roll", Json{{"ranks", all}, {"key", lifeline::random_key()}}.dump());
  }
  const Json roll = Json::parse(line.get("probe/roll", options.timeout));
  Roll made;
  made.key = roll.at("key");
  std::map<std::pair<std::string, std::string>, int> known;
  std::vector<int> second;
  for (const Json& each : roll.at("ranks")) {
    made.seats.push_back(
        {.host = each.at("host"), .region = each.at("region"), .machine = each.at("machine")});
    made.addresses.push_back({each.at("address"), each.at("port")});
    const int rank = static_cast<int>(made.hosts.size());
    const auto [found, fresh] = known.try_emplace({made.seats.back().host, made.seats.back().machine},
                                                  static_cast<int>(made.first.size()));
    made.hosts.push_back(found->second);
    if (fresh) {
      made.first.push_back(rank);
      second.push_back(-1);
    } else if (second[static_cast<size_t>(found->second)] < 0) {
      second[static_cast<size_t>(found->second)] = rank;
    }
  }
  for (const auto& round : rounds_of_pairs(static_cast<int>(made.first.size()))) {
    for (const auto& [a, b] : round) {
      const int x = made.first[static_cast<size_t>(a)], y = made.first[static_cast<size_t>(b)];
      made.pairs.push_back({.low = std::min(x, y), .high = std::max(x, y)});
    }
  }
  for (size_t host = 0; host < second.size(); ++host) {
    if (second[host] >= 0)
      made.pairs.push_back({.low = made.first[host], .high = second[host], .inside = true});
  }
  return made;
}

/// This rank's part of the probe.
class Prober {
 public:
  Prober(lifeline::Lifeline& line, const LinkProbeOptions& options)
      : line_(line),
        options_(options),
        listener_(lifeline::listen_at({options.address.empty() ? line.local().host : options.address, 0})),
        roll_(call_roll(line, options, lifeline::local_address(listener_))),
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
    Json row = Json::array();
    for (size_t i = 0; i < mine_.size(); ++i) {
      if (const auto measured = measure(mine_[i])) {
        row.push_back({measured->low, measured->high, measured->round_trip, measured->there, measured->back,
                       measured->spread});
      }
      if (rank() == 0 && options_.progress) {
        const Pair& pair = mine_[i];
        options_.progress(static_cast<int>(i) + 1, static_cast<int>(mine_.size()), name(pair));
      }
    }
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
    while (missing > 0) {
      auto socket = lifeline::accept_from(listener_);
      if (!socket) {
        std::vector<pollfd> fds{{listener_.fd(), POLLIN, 0}};
        waits.wait(fds);
        continue;
      }
      std::string text(kHello, '\0');
      for (size_t got = 0; got < kHello;) {
        const ssize_t more = ::recv(socket->fd(), text.data() + got, kHello - got, MSG_DONTWAIT);
        if (more == 0 || (more < 0 && errno != EAGAIN && errno != EINTR)) {
          text.clear();
          break;
        }
        if (more > 0) {
          got += static_cast<size_t>(more);
          continue;
        }
        std::vector<pollfd> fds{{socket->fd(), POLLIN, 0}};
        waits.wait(fds);
      }
      if (text.size() != kHello || !lifeline::proves(text.substr(0, 32), roll_.key)) continue;  // a stranger
      add(std::stoi(text.substr(33)), text[32], *std::move(socket));
      --missing;
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
    for (int k = 0; near && k < 40; ++k) {
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
    bool sending = !pair.inside || low, receiving = !pair.inside || !low;
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
      waits.wait(fds, in_slot ? milliseconds(5) : kLook);
      if (receiving && (fds[1].revents & POLLIN) != 0) {
        // The kernel counts and drops: what comes is not looked at.
        const ssize_t got = ::recv(peer.data.fd(), scratch.data(), scratch.size(), MSG_DONTWAIT | MSG_TRUNC);
        if (got > 0) {
          if (!in_slot) in_slot.emplace();
          bytes += static_cast<double>(got);
        }
      }
      if (sending && (fds[1].revents & POLLOUT) != 0)
        (void)!::send(peer.data.fd(), zeros.data(), zeros.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if ((fds[1].revents & (POLLERR | POLLHUP)) != 0)
        throw CommError("the link {} broke while it was measured", name(pair));
      if (receiving && in_slot && in_slot->seconds() >= slot) {
        settling.add(bytes / in_slot->restart());
        bytes = 0;
      }
      if (receiving && (settling.settled() || since_start.seconds() > bound)) {
        receiving = false;
        done = true;
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
    all.one_machine = std::all_of(roll_.seats.begin(), roll_.seats.end(), [&](const Seat& seat) {
      return seat.machine == roll_.seats.front().machine;
    });
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
      for (const Json& each :
           Json::parse(line_.get(fmt::format("probe/row/{}", rank), std::chrono::hours(1)))) {
        const auto a = static_cast<size_t>(roll_.hosts[each.at(0).get<size_t>()]);
        const auto b = static_cast<size_t>(roll_.hosts[each.at(1).get<size_t>()]);
        const double payload = a == b ? 1 : network::kPayloadShare;
        const auto gbit = [&](double bytes) { return rounded(8e-9 * std::max(bytes, 1.0) / payload); };
        double there = gbit(each.at(3)), back = gbit(each.at(4));
        if (std::abs(there - back) < kNoise * std::max(there, back))
          there = back = rounded((there + back) / 2);
        const double latency = rounded(1e3 * each.at(2).get<double>() / 2);
        links[a * n + b] = {.latency_ms = latency, .gbit = there};
        links[b * n + a] = {.latency_ms = latency, .gbit = back};
        if (each.at(5).get<double>() > kNoise)
          all.unsteady.push_back(fmt::format("{} - {}", hosts[a].name, hosts[b].name));
      }
    }
    all.topology = network::Topology("measured", std::move(hosts), std::move(links));
    return all;
  }

  /// To four digits: more was not measured.
  static double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

  lifeline::Lifeline& line_;
  const LinkProbeOptions& options_;
  lifeline::Socket listener_;
  Roll roll_;
  Turns turns_;
  std::vector<Pair> mine_;
  std::map<int, Peer> peers_;
  double bound_ = 1;
};

}  // namespace

void Settling::add(double rate) { rates_.push_back(rate); }

std::vector<double> Settling::last() const {
  const auto count = std::min(rates_.size(), static_cast<size_t>(needed_));
  return {rates_.end() - static_cast<std::ptrdiff_t>(count), rates_.end()};
}

double Settling::spread() const {
  const std::vector<double> slots = last();
  if (slots.empty()) return 1;
  const auto [least, most] = std::minmax_element(slots.begin(), slots.end());
  return *most > 0 ? (*most - *least) / *most : 1;
}

bool Settling::settled() const { return rates_.size() > static_cast<size_t>(needed_) && spread() < kAlike; }

double Settling::rate() const {
  std::vector<double> slots = last();
  if (slots.empty()) return 0;
  if (settled()) {
    double sum = 0;
    for (const double each : slots) sum += each;
    return sum / static_cast<double>(slots.size());
  }
  std::nth_element(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(slots.size() / 2), slots.end());
  return slots[slots.size() / 2];
}

std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int n) {
  std::vector<std::vector<std::pair<int, int>>> rounds;
  const int even = n + n % 2;  // with an odd number one rests
  for (int round = 0; round < even - 1; ++round) {
    std::vector<std::pair<int, int>> pairs;
    for (int k = 0; k < even / 2; ++k) {
      // The last stays where it is, the others move around a circle.
      const int a = k == 0 ? even - 1 : (round + k) % (even - 1), b = (round - k + even - 1) % (even - 1);
      if (a < n && b < n) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
    rounds.push_back(std::move(pairs));
  }
  return rounds;
}

std::optional<MeasuredLinks> probe_links(lifeline::Lifeline& lifeline, const LinkProbeOptions& options) {
  return Prober(lifeline, options).run();
}

}  // namespace syncopate::run
