#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "syncopate/base/descriptor.h"
#include "syncopate/emulation/lab.h"

// How a running lab is asked and changed: a socket in a folder that is its owner's alone.
namespace syncopate::emulation {

/// $XDG_RUNTIME_DIR/syncopate/labs, or /tmp/syncopate-<uid>/labs; made where it is not there. Throws
/// ConfigError where it is someone else's.
std::filesystem::path labs_folder();

/// Where a lab's socket is made, before it listens.
inline std::filesystem::path fresh_socket(const std::filesystem::path& socket) {
  return socket.string() + ".new";
}
/// Whether somebody listens at this socket.
bool somebody_listens(const std::filesystem::path& socket);

/// A lab that runs.
struct LabInfo {
  std::string name, network, how, congestion_control;
  std::vector<std::string> hosts;
  int pid = 0;  ///< of the process that started it
  double seconds = 0;
  std::string report;  ///< how late it is, for people
};
/// Sockets that a lab left which was killed are removed.
std::vector<LabInfo> list_labs();

/// What to change of a link; what is not given stays.
struct LinkChange {
  std::optional<double> gbit{}, latency_ms{}, jitter_ms{}, loss{};
};
/// "gbit=0.5"; throws ConfigError with what there is.
void read_assignment(std::string_view assignment, LinkChange& change);

/// Both directions between two hosts, "A-B" by name or number; a link that was cut is there again. Returns a
/// sentence that says what is so now. Throws ConfigError.
std::string change_link(const std::string& lab, const std::string& between, const LinkChange& change);
std::string cut_link(const std::string& lab, const std::string& between);

/// The two hosts of "A-B"; their names may have dashes.
std::pair<int, int> parse_between(const network::Topology& topology, std::string_view between);

/// One request and its answer. `descriptors` takes those that came with it. Throws ConfigError with the lab's
/// own sentence, or std::system_error where nobody answers.
nlohmann::json ask(const std::filesystem::path& socket, const nlohmann::json& request,
                   std::vector<int>* descriptors = nullptr);

class Switch;
struct HostSide;

/// Answers in a thread of its own.
class ControlServer {
 public:
  struct Lab {
    std::string name, how, congestion_control;
    const network::Topology& topology;
    const std::vector<HostSide>& hosts;
    Switch& network_switch;
    int outer_pid = 0;
  };
  /// Listens at once; answers after `start`.
  ControlServer(std::filesystem::path socket, const Lab& lab);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  void start();

 private:
  void run();
  void answer(int client);
  nlohmann::json reply(const nlohmann::json& request, bool& with_descriptors);
  nlohmann::json info() const;
  nlohmann::json change(const nlohmann::json& request);
  void check_change(int a, int b, const network::Link& there, const network::Link& back) const;

  std::filesystem::path path_;
  Lab lab_;
  Descriptor listener_, wake_;
  std::thread thread_;
};

nlohmann::json to_json(const LabReport& report);
LabReport report_from_json(const nlohmann::json& json);

}  // namespace syncopate::emulation
