#pragma once

#include <cstdint>
#include <string>

#include "syncopate/base/clock.h"

namespace syncopate {

/// Progress display: one self-updating line on a terminal, a plain line every few seconds elsewhere. Writes
/// to standard error, so that standard output stays for results.
class Progress {
 public:
  enum class Style { kNone, kLines, kBar };
  static Style style_for_stderr();

  Progress(Style style, int64_t total) : style_(style), total_(total) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of the total is done, `first` of which before this process began; `details` is shown after the
  /// bar.
  void update(int64_t done, int64_t first, const std::string& details);
  /// Prints a whole line that stays, above the bar.
  void say(const std::string& line);
  void clear();

 private:
  Style style_;
  int64_t total_;
  Stopwatch since_start_, since_shown_;
  bool shown_ = false;
  bool any_ = false;
};

}  // namespace syncopate
