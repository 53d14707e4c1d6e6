#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/emulation/control.h"
#include "syncopate/emulation/hosts.h"
#include "syncopate/emulation/limits.h"
#include "syncopate/emulation/switch.h"

namespace syncopate::emulation {
namespace {

std::string read_line(int client) {
  std::string line;
  std::array<char, 4096> buffer{};
  while (line.find('\n') == std::string::npos) {
    const ssize_t size = ::recv(client, buffer.data(), buffer.size(), 0);
    if (size <= 0) break;
    line.append(buffer.data(), static_cast<size_t>(size));
  }
  return line;
}

/// The descriptors go with the first byte.
void send_answer(int client, const std::string& text, const std::vector<int>& descriptors) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostHosts * sizeof(int))> control{};
  size_t done = 0;
  while (done < text.size()) {
    iovec part{const_cast<char*>(text.data()) + done, text.size() - done};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (done == 0 && !descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    }
    const ssize_t sent = ::sendmsg(client, &message, MSG_NOSIGNAL);
    if (sent <= 0) return;
    done += static_cast<size_t>(sent);
  }
}

}  // namespace

ControlServer::ControlServer(std::filesystem::path socket, const Lab& lab)
    : path_(std::move(socket)),
      lab_(lab),
      listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Under its name only when it listens: who finds a socket that refuses takes it for one that was left.
  const std::string text = fresh_socket(path_).string();
  if (text.size() >= sizeof address.sun_path)
    throw std::system_error(ENAMETOOLONG, std::generic_category(), text);
  std::copy(text.begin(), text.end(), address.sun_path);
  ::unlink(text.c_str());
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 64) != 0 || ::rename(text.c_str(), path_.c_str()) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot listen at " + text);
}

ControlServer::~ControlServer() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  ::unlink(path_.c_str());
}

void ControlServer::start() {
  sigset_t all, old;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void ControlServer::run() {
  while (true) {
    std::array<pollfd, 2> polled{{{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[1].revents != 0) return;
    const Descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.open()) answer(client.get());
  }
}

void ControlServer::answer(int client) {
  const timeval limit{.tv_sec = 2, .tv_usec = 0};  // nobody may keep others waiting
  ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  nlohmann::json answer;
  std::vector<int> descriptors;
  try {
    bool with_descriptors = false;
    answer = reply(nlohmann::json::parse(read_line(client)), with_descriptors);
    for (const HostSide& host : lab_.hosts) {
      if (with_descriptors) descriptors.push_back(host.network_namespace.get());
    }
  } catch (const std::exception& error) {
    answer = {{"error", error.what()}};
  }
  send_answer(client, answer.dump(), descriptors);
}

nlohmann::json ControlServer::info() const {
  std::vector<std::string> hosts;
  for (const network::Host& host : lab_.topology.hosts()) hosts.push_back(host.name);
  LabReport report = lab_.network_switch.report();
  report.how = lab_.how;
  report.congestion_control = lab_.congestion_control;
  return {{"name", lab_.name},        {"network", lab_.topology.name()},
          {"how", lab_.how},          {"congestion_control", lab_.congestion_control},
          {"hosts", hosts},           {"pid", lab_.outer_pid},
          {"report", to_json(report)}};
}

nlohmann::json ControlServer::reply(const nlohmann::json& request, bool& with_descriptors) {
  const std::string what = request.at("ask");
  if (what == "info") return info();
  if (what == "inside") {
    with_descriptors = true;
    return {{"name", lab_.name}, {"topology", network::to_toml(lab_.topology)}};
  }
  if (what == "set" || what == "cut") return change(request);
  throw ConfigError("a lab knows no \"{}\"; is this syncopate of the same version?", what);
}

/// Throws ConfigError where the network with these links is none, or more than a lab carries.
void ControlServer::check_change(int a, int b, const network::Link& there, const network::Link& back) const {
  std::vector<network::Link> links;
  for (int from = 0; from < lab_.topology.size(); ++from) {
    for (int to = 0; to < lab_.topology.size(); ++to) {
      links.push_back(from == a && to == b   ? there
                      : from == b && to == a ? back
                      : from == to           ? lab_.topology.link(from, to)
                                             : lab_.network_switch.link(from, to));
    }
  }
  const network::Topology changed(lab_.topology.name(), lab_.topology.hosts(), std::move(links));
  if (const double together = busiest_gbit(changed); together > kMostGbit * (1 + 1e-9)) {
    throw ConfigError("the hosts could then send {:.4g} Gbit/s together, and a lab carries {}", together,
                      kMostGbit);
  }
}

nlohmann::json ControlServer::change(const nlohmann::json& request) {
  const auto [a, b] = parse_between(lab_.topology, request.at("between").get<std::string>());
  const std::string& from = lab_.topology.hosts()[static_cast<size_t>(a)].name;
  const std::string& to = lab_.topology.hosts()[static_cast<size_t>(b)].name;
  Switch& network = lab_.network_switch;
  if (request.at("ask") == "cut") {
    network.cut(a, b);
    network.cut(b, a);
    return {{"sentence", fmt::format("{} and {} are cut off from each other", from, to)}};
  }
  const auto changed = [&](network::Link link) {
    link.gbit = request.value("gbit", link.gbit);
    link.latency_ms = request.value("latency_ms", link.latency_ms);
    link.jitter_ms = request.value("jitter_ms", link.jitter_ms);
    link.loss = request.value("loss", link.loss);
    return link;
  };
  const network::Link there = changed(network.link(a, b)), back = changed(network.link(b, a));
  check_change(a, b, there, back);
  adapt_host(lab_.hosts[static_cast<size_t>(a)], there);
  adapt_host(lab_.hosts[static_cast<size_t>(b)], back);
  network.change(a, b, there);
  network.change(b, a, back);
  return {{"sentence",
           fmt::format("{} to {}: {:.4g} Gbit/s, {:.4g} ms{}{}", from, to, there.gbit, there.latency_ms,
                       there.loss > 0 ? fmt::format(", loss {}", there.loss) : "",
                       back.gbit != there.gbit ? fmt::format("; back {:.4g} Gbit/s", back.gbit) : "")}};
}

}  // namespace syncopate::emulation
