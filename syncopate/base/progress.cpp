#include "syncopate/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "syncopate/base/text.h"

namespace syncopate {
namespace {

constexpr double kBarSeconds = 0.1;
constexpr double kLineSeconds = 10;

}  // namespace

Progress::Style Progress::style_for_stderr() { return ::isatty(STDERR_FILENO) ? Style::kBar : Style::kLines; }

void Progress::update(int64_t done, int64_t first, const std::string& details) {
  if (style_ == Style::kNone) return;
  const bool last = done == total_;
  if (any_ && !last && since_shown_.seconds() < (style_ == Style::kBar ? kBarSeconds : kLineSeconds)) return;
  any_ = true;
  since_shown_.restart();
  const double share = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 1;
  const double seconds = since_start_.seconds();
  const double left =
      done > first ? seconds * static_cast<double>(total_ - done) / static_cast<double>(done - first) : 0;
  const std::string text =
      fmt::format("step {}/{} · {} · {} left", done, total_, details, duration_for_people(left));
  if (style_ == Style::kLines) {
    fmt::print(stderr, "{}\n", text);
    return;
  }
  constexpr int kWidth = 12;
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "█" : "░";
  fmt::print(stderr, "\r\033[K{} {}", bar, text);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::say(const std::string& line) {
  clear();
  if (style_ != Style::kNone) fmt::print(stderr, "{}\n", line);
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace syncopate
