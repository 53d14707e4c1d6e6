#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace syncopate {

/// Writes to standard error at once. Where that has gone (a closed terminal, a full disk), nothing happens: a
/// run that could still save its work must not fail over a line.
void write_stderr(std::string_view text) noexcept;

/// A line for the user.
template <typename... Args>
void tell(fmt::format_string<Args...> text, Args&&... args) {
  write_stderr(fmt::format(text, std::forward<Args>(args)...) + "\n");
}

}  // namespace syncopate
