#pragma once

namespace syncopate::cli {

/// Installs signal handlers: the first SIGINT or SIGTERM requests a clean stop, the second exits at once
/// (130).
void catch_interrupts();
bool interrupted();

}  // namespace syncopate::cli
