#include "syncopate/emulation/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/emulation/hosts.h"

namespace syncopate::emulation {
namespace {

std::optional<long> setting(const char* path) {
  std::ifstream file(path);
  long value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// As the kernel wants it: in one write.
void write_whole(const char* path, const std::string& text) {
  const Descriptor file(::open(path, O_WRONLY | O_CLOEXEC));
  if (!file.open() || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw ConfigError("a lab needs a user namespace, and {} cannot be written ({}); {}", path,
                      std::generic_category().message(errno), advice_for(errno));
}

}  // namespace

std::string advice_for(int error) {
  if (error == EMFILE || error == ENFILE)
    return "it needs more open files: raise the limit with `ulimit -n`, or take fewer hosts";
  if (setting("/proc/sys/kernel/unprivileged_userns_clone") == 0)
    return "user namespaces are switched off: run as root, or let root do `sysctl "
           "kernel.unprivileged_userns_clone=1`";
  if (setting("/proc/sys/user/max_user_namespaces") == 0 || setting("/proc/sys/user/max_net_namespaces") == 0)
    return "user.max_user_namespaces or user.max_net_namespaces is 0: raise them with sysctl";
  if (::geteuid() != 0 && setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
    return "AppArmor restricts user namespaces: run as root, or let root do `sysctl "
           "kernel.apparmor_restrict_unprivileged_userns=0`";
  if (error == ENOSPC)
    return "the machine's limit of namespaces is reached: see `sysctl user.max_net_namespaces`";
  if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL)
    return "the kernel lacks network namespaces, veth devices or packet sockets";
  return "run as root; in a container, start it with `--privileged`, or with `--cap-add SYS_ADMIN --cap-add "
         "NET_ADMIN --security-opt seccomp=unconfined`";
}

void leave_namespaces() {
  constexpr int kNew = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID;
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (user == 0 && ::unshare(kNew) == 0) return;
  if (::unshare(CLONE_NEWUSER | kNew) != 0) {
    const int error = errno;
    throw ConfigError("a lab needs namespaces, which this machine does not allow here ({}); {}",
                      std::generic_category().message(error), advice_for(error));
  }
  // Root inside, the same user as before to everyone else.
  write_whole("/proc/self/setgroups", "deny");
  write_whole("/proc/self/uid_map", fmt::format("0 {} 1", user));
  write_whole("/proc/self/gid_map", fmt::format("0 {} 1", group));
}

void mount_own_proc() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
      ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0)
    return;
  const int error = errno;
  throw ConfigError("a lab needs a /proc of its own, which this machine does not allow here ({}); {}",
                    std::generic_category().message(error), advice_for(error));
}

void name_hosts(const std::vector<std::string>& names, const std::string& scratch) {
  std::ofstream file(scratch);
  file << "127.0.0.1 localhost\n";
  for (size_t k = 0; k < names.size(); ++k)
    file << address_text(static_cast<int>(k)) << ' ' << names[k] << '\n';
  std::ifstream before("/etc/hosts");
  if (before.peek() != std::ifstream::traits_type::eof()) file << before.rdbuf();
  file.close();
  ::mount(scratch.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr);
  ::unlink(scratch.c_str());
}

}  // namespace syncopate::emulation
