#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/network/topology.h"

// A network on one machine: a network namespace for each host, joined by links of the rates and latencies
// that were asked for. See docs/lab.md.
namespace syncopate::emulation {

struct LabOptions {
  network::Topology topology{};  ///< of the hosts that take part, at the rates that are emulated
  std::filesystem::path program = "/proc/self/exe";
  std::vector<std::string> argv{};  ///< of the program that runs inside
  std::map<std::string, std::string> environment{};
  std::filesystem::path
      report{};  ///< takes what the lab measured of itself (LabReport) at its end; empty: none
};

/// Makes the network, runs the program inside with the same input, output and terminal and returns its exit
/// code when it has ended and nothing is left of the network. Inside, `inside()` finds the hosts. Signals are
/// passed on. Throws ConfigError before anything is made: where the machine does not allow it, or a rate is
/// beyond what it can carry.
int run_in_lab(const LabOptions& options);

/// The lab that this process runs in, if it does.
class Inside {
 public:
  const std::string& name() const { return name_; }  ///< as `lab list` shows it
  const network::Topology& topology() const { return topology_; }
  std::string address(int host) const;  ///< IPv4
  int namespace_of(int host) const;     ///< a descriptor for setns(CLONE_NEWNET)
  /// This thread sits on that host from now on: sockets that it makes are there.
  void enter(int host) const;

 private:
  friend std::optional<Inside> inside();
  std::string name_;
  network::Topology topology_;
  std::vector<int> namespaces_;
};
std::optional<Inside> inside();
/// Whether this process is the program that the lab was made for, not one that it started.
bool is_program_of_lab();

/// What the lab knows of itself while it ran, and at its end.
struct LabReport {
  struct LinkUse {
    int from = 0, to = 0;             ///< hosts
    double bytes = 0;                 ///< on the wire
    double dropped = 0;               ///< packets: the queue was full, or loss was asked for
    double busy_seconds = 0;          ///< in which it sent
    double latency_ms = 0, gbit = 0;  ///< as it is now; 0 Gbit/s: not known
  };
  std::string how;                 ///< "switch" or "netem"
  std::string congestion_control;  ///< of TCP inside
  double seconds = 0;
  double late_ms_p50 = 0, late_ms_p99 = 0, late_ms_max = 0;  ///< packets after their due time
  double late_share = 0;  ///< of packets later than the bound (docs/lab.md)
  bool trustworthy = true;
  int changed = 0;  ///< how often a link was changed or cut
  std::vector<LinkUse> links;
  // What the shares and quantiles are made from.
  double late = 0, taken = 0, missed = 0;  ///< packets: beyond the bound; that came; that nobody took
  std::vector<double> lateness;            ///< packets by class; see Lateness
};
/// Of the lab that this process is inside of.
std::optional<LabReport> ask_report();
/// What was so between two reports of a lab; late_ms_max is of all its life.
LabReport between(const LabReport& before, const LabReport& after);
/// Fills in the shares, quantiles and `trustworthy` from the counts.
void judge(LabReport& report);

}  // namespace syncopate::emulation
