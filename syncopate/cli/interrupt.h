#pragma once

namespace syncopate::cli {

/// From here on the first SIGINT or SIGTERM asks for an orderly end and the second ends the process at once
/// (130).
void catch_interrupts();
bool interrupted();

}  // namespace syncopate::cli
