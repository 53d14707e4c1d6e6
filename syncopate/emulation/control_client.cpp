#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/emulation/control.h"
#include "syncopate/emulation/variables.h"

namespace syncopate::emulation {
namespace {

[[noreturn]] void no_reply(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

Descriptor connect_to(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket.string();
  if (path.size() >= sizeof address.sun_path) throw ConfigError("{} is too long for a socket", path);
  std::copy(path.begin(), path.end(), address.sun_path);
  Descriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    no_reply("nobody answers");
  return connection;
}

/// Only its owner may come in: who can write here can change a lab.
void make_private(const std::filesystem::path& folder) {
  ::mkdir(folder.c_str(), 0700);
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() ||
      (found.st_mode & 077) != 0) {
    throw ConfigError(
        "{} must be a folder of yours that nobody else can enter; remove it, or set XDG_RUNTIME_DIR to one "
        "that is",
        folder.string());
  }
}

std::filesystem::path socket_of(const std::string& lab) {
  const std::filesystem::path path = labs_folder() / (lab + ".sock");
  if (lab.find('/') == std::string::npos && std::filesystem::exists(path)) return path;
  std::vector<std::string> known;
  for (const LabInfo& info : list_labs()) known.push_back(info.name);
  if (known.empty())
    throw ConfigError("there is no lab {}, and none is running; `syncopate lab` starts one", lab);
  throw ConfigError("there is no lab {}{}", lab, suggestion(lab, known));
}

std::string request_change(const std::string& lab, nlohmann::json request) {
  try {
    return ask(socket_of(lab), request).at("sentence");
  } catch (const std::system_error& error) {
    const int code = error.code().value();
    if (code == ECONNREFUSED || code == ENOENT || code == ECONNRESET)
      throw ConfigError("lab {} does not answer: it has ended; `syncopate lab list` shows those that run",
                        lab);
    throw ConfigError("lab {} does not answer: {}", lab,
                      code == EAGAIN ? "it is too busy; try again" : error.code().message());
  }
}

}  // namespace

std::filesystem::path labs_folder() {
  // Inside a lab the user may have another number.
  if (const char* own = ::getenv(kSocketVariable); own != nullptr && *own != '\0')
    return std::filesystem::path(own).parent_path();
  const char* runtime = ::getenv("XDG_RUNTIME_DIR");
  const bool given = runtime != nullptr && *runtime != '\0' && std::filesystem::is_directory(runtime);
  const std::filesystem::path own =
      given ? std::filesystem::path(runtime) / "syncopate"
            : std::filesystem::path("/tmp") / fmt::format("syncopate-{}", ::geteuid());
  make_private(own);
  make_private(own / "labs");
  return own / "labs";
}

bool somebody_listens(const std::filesystem::path& socket) {
  try {
    return connect_to(socket).open();
  } catch (const std::system_error&) {
    return false;
  }
}

nlohmann::json ask(const std::filesystem::path& socket, const nlohmann::json& request,
                   std::vector<int>* descriptors) {
  const Descriptor connection = connect_to(socket);
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const std::string text = request.dump() + "\n";
  if (::send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
    no_reply("nobody listens");
  std::string answer;
  while (true) {
    std::array<char, 16384> buffer{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(253 * sizeof(int))> control{};
    iovec part{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = ::recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
    if (size < 0) no_reply("no answer");
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
      if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
      std::vector<int> came((each->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      std::memcpy(came.data(), CMSG_DATA(each), came.size() * sizeof(int));
      for (const int fd : came) {
        if (descriptors != nullptr) {
          descriptors->push_back(fd);
        } else {
          ::close(fd);
        }
      }
    }
    if (size == 0) break;
    answer.append(buffer.data(), static_cast<size_t>(size));
  }
  const nlohmann::json reply = nlohmann::json::parse(answer, nullptr, false);
  if (!reply.is_object()) throw std::system_error(EBADMSG, std::generic_category(), "half an answer");
  if (reply.contains("error")) throw ConfigError("{}", reply.at("error").get<std::string>());
  return reply;
}

std::vector<LabInfo> list_labs() {
  std::vector<LabInfo> labs;
  for (const auto& entry : std::filesystem::directory_iterator(labs_folder())) {
    if (entry.path().extension() != ".sock") continue;
    try {
      const nlohmann::json info = ask(entry.path(), {{"ask", "info"}});
      const LabReport report = report_from_json(info.at("report"));
      labs.push_back({.name = info.at("name"),
                      .network = info.at("network"),
                      .how = info.at("how"),
                      .congestion_control = info.at("congestion_control"),
                      .hosts = info.at("hosts").get<std::vector<std::string>>(),
                      .pid = info.at("pid"),
                      .seconds = report.seconds,
                      .report = fmt::format("late by {:.2f} ms (99 % of packets){}", report.late_ms_p99,
                                            report.trustworthy ? "" : ", too late to be trusted")});
    } catch (const std::system_error& error) {
      // Killed before it could tidy up.
      if (error.code().value() == ECONNREFUSED) ::unlink(entry.path().c_str());
    }
  }
  std::sort(labs.begin(), labs.end(), [](const LabInfo& a, const LabInfo& b) { return a.name < b.name; });
  return labs;
}

void read_assignment(std::string_view assignment, LinkChange& change) {
  const size_t equals = assignment.find('=');
  const std::string name(assignment.substr(0, equals));
  const std::vector<std::string> known{"gbit", "latency_ms", "jitter_ms", "loss"};
  const auto place = std::find(known.begin(), known.end(), name);
  if (place == known.end()) throw ConfigError("a link has no \"{}\"{}", name, suggestion(name, known));
  const auto value =
      equals == std::string_view::npos ? std::nullopt : parse_number(assignment.substr(equals + 1));
  if (!value || !std::isfinite(*value)) throw ConfigError("{} must be a number: {}=0.5", assignment, name);
  if (name == "gbit" && !(*value > 0))
    throw ConfigError("gbit must be above 0, got {}; `syncopate lab cut` cuts a link", *value);
  if (*value < 0) throw ConfigError("{} must not be negative, got {}", name, *value);
  if (name == "loss" && *value >= 1)
    throw ConfigError("loss must be below 1, got {}; `syncopate lab cut` cuts a link", *value);
  const std::array fields{&change.gbit, &change.latency_ms, &change.jitter_ms, &change.loss};
  *fields[static_cast<size_t>(place - known.begin())] = *value;
}

std::string change_link(const std::string& lab, const std::string& between, const LinkChange& change) {
  nlohmann::json request{{"ask", "set"}, {"between", between}};
  const auto put = [&](const char* name, const std::optional<double>& value) {
    if (value) request[name] = *value;
  };
  put("gbit", change.gbit);
  put("latency_ms", change.latency_ms);
  put("jitter_ms", change.jitter_ms);
  put("loss", change.loss);
  return request_change(lab, std::move(request));
}

std::string cut_link(const std::string& lab, const std::string& between) {
  return request_change(lab, {{"ask", "cut"}, {"between", between}});
}

std::pair<int, int> parse_between(const network::Topology& topology, std::string_view between) {
  // Names have dashes too: the split at which both halves are hosts.
  std::optional<std::pair<int, int>> found;
  for (size_t dash = between.find('-'); dash != std::string_view::npos; dash = between.find('-', dash + 1)) {
    try {
      found = {topology.find(between.substr(0, dash)), topology.find(between.substr(dash + 1))};
      break;
    } catch (const ConfigError&) {
    }
  }
  if (!found) {
    std::vector<std::string> names;
    for (const network::Host& host : topology.hosts()) names.push_back(host.name);
    throw ConfigError("\"{}\" does not name two hosts as A-B; the lab has {}", between,
                      fmt::format("{}", fmt::join(names, ", ")));
  }
  if (found->first == found->second)
    throw ConfigError("\"{}\" is one host: a lab has links between hosts alone", between);
  return *found;
}

}  // namespace syncopate::emulation
