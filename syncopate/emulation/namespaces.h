#pragma once

#include <string>
#include <vector>

namespace syncopate::emulation {

/// The calling process, which must have one thread, leaves its network and mount namespaces for new ones, and
/// its children will be in a new PID namespace. In a new user namespace as well if it may not otherwise.
/// Throws ConfigError that says what the machine does not allow and what to do.
void leave_namespaces();

/// The first process of the new PID namespace sees the processes there and no others.
void mount_own_proc();

/// The names of a lab's hosts can be looked up inside: /etc/hosts with a line for each before those that are
/// there. Where that cannot be, they have addresses alone. `scratch` is a file that may be made and is
/// removed.
void name_hosts(const std::vector<std::string>& names, const std::string& scratch);

/// What to do where something that a lab needs was refused with this error.
std::string advice_for(int error);

}  // namespace syncopate::emulation
