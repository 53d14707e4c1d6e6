#include "syncopate/base/progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"

namespace syncopate {
namespace {

constexpr double kBarSeconds = 0.1;
constexpr double kLineSeconds = 10;

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, " · "));
}

}  // namespace

Progress::Style Progress::style_for_stderr() { return ::isatty(STDERR_FILENO) ? Style::kBar : Style::kLines; }

int terminal_columns(int file) {
  constexpr int kUsual = 80;
  winsize size{};
  if (::ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return size.ws_col;
}

std::string progress_line(int64_t done, int64_t total, const std::vector<std::string>& details,
                          const std::string& left, int columns, const std::string& what) {
  // A line as wide as the terminal would make some of them begin another.
  const size_t room = static_cast<size_t>(std::max(columns, 2)) - 1;
  std::vector<std::string> parts{fmt::format("{} {}/{}", what, done, total)};
  parts.insert(parts.end(), details.begin(), details.end());
  if (!left.empty()) parts.push_back(left);
  while (parts.size() > 1 && columns_of(joined(parts)) > room) {
    const bool detail = !left.empty() && parts.size() > 3;
    parts.erase(parts.end() - (detail ? 2 : 1));
  }
  const std::string text = joined(parts);
  constexpr size_t kLeast = 4, kMost = 12;
  const size_t used = columns_of(text);
  if (used > room) return text.substr(0, room);  // nothing but digits and letters
  const size_t cells = std::min(kMost, room - used > 0 ? room - used - 1 : 0);
  if (cells < kLeast) return text;
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
  const auto filled = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(cells));
  std::string bar;
  for (size_t i = 0; i < cells; ++i) bar += i < filled ? "█" : "░";
  return bar + " " + text;
}

void Progress::update(int64_t done, int64_t first, const std::vector<std::string>& details) {
  if (style_ == Style::kNone) return;
  done_ = done;
  first_ = first;
  details_ = details;
  const double pause = style_ == Style::kBar ? kBarSeconds : kLineSeconds;
  if (on_screen_ < 0 || done == total_ || since_shown_.seconds() >= pause) show();
}

void Progress::show() {
  since_shown_.restart();
  std::string left;
  if (done_ > first_ && done_ < total_) {
    const double seconds =
        since_start_.seconds() * static_cast<double>(total_ - done_) / static_cast<double>(done_ - first_);
    left = duration_for_people(seconds) + " left";
  }
  on_screen_ = done_;
  if (style_ == Style::kLines) {
    constexpr int kNoEnd = std::numeric_limits<int>::max();
    std::string line = progress_line(done_, total_, details_, left, kNoEnd, what_);
    tell("{}", line.substr(line.find(what_)));
    return;
  }
  write_stderr("\r\033[K" + progress_line(done_, total_, details_, left, terminal_columns(), what_));
  shown_ = true;
  if (done_ == total_) finish(done_);
}

void Progress::finish(int64_t done) {
  if (style_ == Style::kNone) return;
  done_ = done;
  if (on_screen_ != done) show();
  if (shown_) write_stderr("\n");
  shown_ = false;
}

void Progress::say(const std::string& line) {
  clear();
  if (style_ != Style::kNone) tell("{}", line);
}

void Progress::clear() {
  if (!shown_) return;
  write_stderr("\r\033[K");
  shown_ = false;
  on_screen_ = -1;
}

}  // namespace syncopate
