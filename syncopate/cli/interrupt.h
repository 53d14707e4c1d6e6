#pragma once

namespace syncopate::cli {

/// Installs signal handlers: the first SIGINT, SIGTERM or SIGHUP (a closed terminal; not under nohup)
/// requests a clean stop, a second SIGINT or SIGTERM exits at once
/// (130).
void catch_interrupts();
bool interrupted();

}  // namespace syncopate::cli
