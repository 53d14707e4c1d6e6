#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/base/clock.h"

namespace syncopate {

/// Progress display: one self-updating line on a terminal, as wide as that is, and a plain line every few
/// seconds elsewhere. Writes to standard error, so that standard output stays for results.
class Progress {
 public:
  enum class Style { kNone, kLines, kBar };
  static Style style_for_stderr();

  /// `what` is counted: "step 12/40".
  Progress(Style style, int64_t total, std::string what = "step")
      : style_(style), total_(total), what_(std::move(what)) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of the total is done, `first` of which before this process began; `details` are shown after it,
  /// the most important first.
  void update(int64_t done, int64_t first, const std::vector<std::string>& details);
  /// The number of all has changed.
  void expect(int64_t total) { total_ = total; }
  /// The last state, which stays on the screen: `done` may be less than the total, and more than was shown.
  void finish(int64_t done);
  /// Prints a whole line that stays, above the bar.
  void say(const std::string& line);
  void clear();

 private:
  void show();

  Style style_;
  int64_t total_;
  std::string what_;
  int64_t done_ = 0, first_ = 0;  ///< of the last update
  int64_t on_screen_ = -1;        ///< what the last line that was shown said to be done
  std::vector<std::string> details_;
  Stopwatch since_start_, since_shown_;
  bool shown_ = false;  ///< a bar is there that the next one overwrites
};

/// "████░░ step 12/40 · loss 0.5 · 0:10 left" in less than `columns`: details go, the last first, then the
/// time left; the bar fills what room there is.
std::string progress_line(int64_t done, int64_t total, const std::vector<std::string>& details,
                          const std::string& left, int columns, const std::string& what = "step");

/// How wide the terminal at a file descriptor (standard error) is now; 80 where that is none or does not say.
int terminal_columns(int file = 2);

}  // namespace syncopate
