#pragma once

#include <string>

namespace syncopate {

/// Notes are sentences for the user. Some say that something is probably wrong: those are warnings.
inline std::string warning(const std::string& sentence) { return "warning: " + sentence; }

/// A note as it is shown.
inline std::string note_line(const std::string& note) {
  return note.starts_with("warning: ") ? note : "note: " + note;
}

}  // namespace syncopate
