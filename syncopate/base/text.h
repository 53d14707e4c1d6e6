#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

/// The pieces of `text` between separators; "a,,b" has three.
std::vector<std::string_view> split(std::string_view text, char separator);

/// What stands before the first line break: libraries put a stack trace behind it.
std::string first_line(std::string_view text);

/// `text` without white space at either end.
std::string_view trim(std::string_view text);

/// The candidate nearest to `word`, if it is near enough to be a typo.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean \"x\"?" or, when nothing is near, "; choose one of: a, b, c".
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// How many columns UTF-8 text takes on a terminal, one for each character.
size_t columns_of(std::string_view text);

/// `text` in lines of at most `columns`, broken at spaces; a word that is longer has a line to itself. Lines
/// but the first begin with `indent` spaces, which count.
std::vector<std::string> wrap(std::string_view text, size_t columns, size_t indent = 0);

/// Whole-string numbers; nothing for anything else ("12x", "", "nan" as an integer).
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

/// "90s", "10m" or "2h" in seconds; nothing for anything else.
std::optional<double> parse_duration(std::string_view text);

/// Human-readable size: "1.5 MB", "812 B".
std::string bytes_for_people(double bytes);

/// "2:05" or "1:02:05".
std::string duration_for_people(double seconds);

/// `word` as a shell reads it back: in quotes where it must be.
std::string shell_word(std::string_view word);

}  // namespace syncopate
