#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/emulation/control.h"
#include "syncopate/emulation/hosts.h"
#include "syncopate/emulation/lab.h"
#include "syncopate/emulation/variables.h"

namespace syncopate::emulation {
namespace {

std::optional<std::filesystem::path> own_socket() {
  const char* path = ::getenv(kSocketVariable);
  if (path == nullptr || *path == '\0') return std::nullopt;
  return path;
}

nlohmann::json ask_own(const std::filesystem::path& socket, const char* what, std::vector<int>* descriptors) {
  try {
    return ask(socket, {{"ask", what}}, descriptors);
  } catch (const std::system_error& error) {
    throw CommError("the lab of this process does not answer at {} ({}); {} is set: was it set by hand?",
                    socket.string(), error.code().message(), kSocketVariable);
  }
}

}  // namespace

std::string Inside::address(int host) const {
  check(host >= 0 && host < topology_.size(), "a host of the lab");
  return address_text(host);
}

int Inside::namespace_of(int host) const { return namespaces_.at(static_cast<size_t>(host)); }

void Inside::enter(int host) const {
  if (::setns(namespace_of(host), CLONE_NEWNET) != 0)
    throw CommError("cannot enter host {} of lab {}: {}", topology_.hosts()[static_cast<size_t>(host)].name,
                    name_, std::generic_category().message(errno));
}

std::optional<Inside> inside() {
  const auto socket = own_socket();
  if (!socket) return std::nullopt;
  // Asked once: the descriptors stay open as long as the process.
  static const Inside known = [&] {
    Inside lab;
    const nlohmann::json answer = ask_own(*socket, "inside", &lab.namespaces_);
    lab.name_ = answer.at("name");
    lab.topology_ = network::from_toml(answer.at("topology").get<std::string>(), lab.name_);
    check(lab.namespaces_.size() == static_cast<size_t>(lab.topology_.size()), "a namespace for every host");
    return lab;
  }();
  return known;
}

bool is_program_of_lab() {
  const char* const number = ::getenv(kProgramVariable);
  return own_socket() && number != nullptr && number == std::to_string(::getpid());
}

std::optional<LabReport> ask_report() {
  const auto socket = own_socket();
  if (!socket) return std::nullopt;
  return report_from_json(ask_own(*socket, "info", nullptr).at("report"));
}

}  // namespace syncopate::emulation
