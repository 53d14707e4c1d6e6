#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

/// The pieces of `text` between separators; "a,,b" has three.
std::vector<std::string_view> split(std::string_view text, char separator);

/// `text` without white space at either end.
std::string_view trim(std::string_view text);

/// The candidate nearest to `word`, if it is near enough to be a typo.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean \"x\"?" or, when nothing is near, "; choose one of: a, b, c".
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// Whole-string numbers; nothing for anything else ("12x", "", "nan" as an integer).
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

/// Human-readable size: "1.5 MB", "812 B".
std::string bytes_for_people(double bytes);

/// "2:05" or "1:02:05".
std::string duration_for_people(double seconds);

}  // namespace syncopate
