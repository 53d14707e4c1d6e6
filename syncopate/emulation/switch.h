#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "syncopate/base/descriptor.h"
#include "syncopate/emulation/hosts.h"
#include "syncopate/emulation/lab.h"
#include "syncopate/emulation/lateness.h"
#include "syncopate/emulation/wire.h"
#include "syncopate/network/topology.h"

namespace syncopate::emulation {

/// Takes every packet that a host sends and gives it to the other one when the link between them would have.
/// One thread, ahead of all others where the machine allows it; a second one on another core steps in where
/// the first one's core is taken away (by a hypervisor, for 100 ms at a time), with packets due.
class Switch {
 public:
  /// Made in the lab's own network namespace. Throws std::system_error.
  Switch(const network::Topology& topology, const std::vector<HostSide>& hosts);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  /// The threads. `outer_pid` tells labs of one machine apart.
  void start(int outer_pid);
  /// Whether the switch runs ahead of others by itself. If not, the others have to step back.
  bool ahead() const { return ahead_; }

  network::Link link(int from, int to) const;
  void change(int from, int to, const network::Link& link);
  void cut(int from, int to);

  /// All but how and congestion_control.
  LabReport report() const;

 private:
  struct InFlight {
    int64_t due = 0;
    std::unique_ptr<uint8_t[]> bytes;
    size_t size = 0;
  };
  struct Pair {
    Wire wire;
    std::deque<InFlight> in_flight;
  };
  struct Next {
    int64_t due;
    int pair;
    bool operator>(const Next& other) const { return due > other.due; }
  };

  void run();
  void stand_by();
  void get_ahead(int core);
  void take_from_all();
  void take_from(int host, int64_t clock_offset);
  void accept(int from, const uint8_t* bytes, size_t size, int64_t at);
  int64_t deliver();  ///< all that is due; when the next one is
  Pair& pair(int from, int to) { return pairs_[static_cast<size_t>(from * hosts_ + to)]; }
  const Pair& pair(int from, int to) const { return pairs_[static_cast<size_t>(from * hosts_ + to)]; }
  double round_trip_ms(int from, int to) const;

  const int hosts_;
  std::vector<Descriptor> sockets_;  ///< by host
  Descriptor wake_;                  ///< written when there is something new
  mutable std::mutex mutex_;         ///< of all below
  std::vector<Pair> pairs_;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next_;  ///< the first of each pair
  Lateness lateness_;
  mutable double missed_ = 0;  ///< packets that came while nobody took them: the machine was too busy
  double taken_ = 0;
  int changed_ = 0;  ///< how often a link was changed or cut
  int64_t started_ = 0;
  int64_t last_turn_ = 0;  ///< when a thread last looked
  std::vector<uint8_t> scratch_;
  std::vector<pollfd> polled_;  ///< the sockets of the hosts
  std::atomic<bool> stop_{false}, ahead_{false};
  std::vector<std::thread> threads_;
};

}  // namespace syncopate::emulation
