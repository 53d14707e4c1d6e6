#include "syncopate/corpora/gutenberg.h"

#include <algorithm>

#include "syncopate/base/letters.h"
#include "syncopate/base/text.h"

namespace syncopate::corpora {
namespace {

/// The licence's longest stretch without the word Gutenberg has 2,340 bytes.
constexpr size_t kFar = 4000;

constexpr std::string_view kWord = "gutenberg";

bool same_letter(char a, char b) { return lower_letter(a) == b; }

size_t find_word(std::string_view text, size_t from) {
  const auto found = std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), kWord.begin(),
                                 kWord.end(), same_letter);
  return found == text.end() ? text.npos : static_cast<size_t>(found - text.begin());
}

/// A line that a header ends with or a footer begins with.
struct Marker {
  bool start = false;
  size_t begin = 0;
  size_t end = 0;  ///< behind the line's end
};

/// Whether a line is "*** <word> OF ... GUTENBERG ...", with or without the blank.
bool is_marker(std::string_view line, std::string_view word) {
  const size_t start = line.find_first_not_of("* ");
  if (start == line.npos) return false;
  line.remove_prefix(start);
  return line.starts_with(word) && line.substr(word.size()).starts_with(" OF ") &&
         find_word(line, 0) != line.npos;
}

/// text.find(word, from), by portions.
size_t find_by_portions(std::string_view text, std::string_view word, size_t from,
                        const LookedAt& looked_at) {
  for (; from < text.size(); from += kPortion) {
    const size_t at = text.substr(0, from + kPortion + word.size() - 1).find(word, from);
    if (at != text.npos) return at;
    if (looked_at) looked_at();
  }
  return text.npos;
}

std::vector<Marker> markers_of(std::string_view text, const LookedAt& looked_at) {
  constexpr std::string_view kStars = "\n***";
  std::vector<Marker> found;
  for (size_t at = text.starts_with("***") ? 0 : find_by_portions(text, kStars, 0, looked_at);
       at != text.npos; at = find_by_portions(text, kStars, at + 1, looked_at)) {
    const size_t begin = text[at] == '\n' ? at + 1 : at;
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const bool start = is_marker(line, "START");
    if (start || is_marker(line, "END"))
      found.push_back({.start = start, .begin = begin, .end = std::min(end + 1, text.size())});
  }
  return found;
}

/// How much of the beginning of `rest`, what follows an END, is the licence.
size_t footer_size(std::string_view rest) {
  size_t last = 0;
  for (;;) {
    const size_t at = find_word(rest.substr(0, last + kFar), last);
    if (at == rest.npos) break;
    last = at + kWord.size();
  }
  if (rest.size() - last <= kFar) return rest.size();
  size_t end = rest.find('\n', last);  // the paragraph's end
  while (end != rest.npos) {
    const size_t next = rest.find('\n', end + 1);
    if (next == rest.npos || trim(rest.substr(end, next - end)).empty()) break;
    end = next;
  }
  return end == rest.npos ? rest.size() : end + 1;
}

/// Where the header begins in `before`, what precedes a START.
size_t header_begin(std::string_view before) {
  size_t first = before.size();
  for (size_t at = before.size(); at > 0 && first - at <= kFar;) {
    const size_t line = before.rfind('\n', at - 1);
    const size_t begin = line == before.npos ? 0 : line + 1;
    if (find_word(before.substr(begin, at - begin), 0) != before.npos) first = begin;
    at = line == before.npos ? 0 : line;
  }
  return first;
}

/// A book's last words are often "End of the Project Gutenberg EBook of ...", just before the marker.
std::string_view without_last_words(std::string_view book) {
  size_t begin = book.find_last_not_of(" \t\r\n") + 1;  // of the last paragraph
  for (size_t end = begin; end > 0;) {
    const size_t line = book.rfind('\n', end - 1);
    const size_t start = line == book.npos ? 0 : line + 1;
    if (trim(book.substr(start, end - start)).empty()) break;
    begin = start;
    end = line == book.npos ? 0 : line;
  }
  const std::string_view paragraph = book.substr(begin);
  const bool ending =
      paragraph.starts_with("End of") && paragraph.size() < 400 && find_word(paragraph, 0) != paragraph.npos;
  return ending ? book.substr(0, begin) : book;
}

}  // namespace

BookText without_gutenberg(std::string_view text, const LookedAt& looked_at) {
  BookText made;
  const std::vector<Marker> markers = markers_of(text, looked_at);
  size_t begin = 0;  // of what lies before the next marker
  for (size_t i = 0; i <= markers.size(); ++i) {
    const bool after_end = i > 0 && !markers[i - 1].start;
    const bool before_start = i < markers.size() && markers[i].start;
    const bool before_end = i < markers.size() && !markers[i].start;
    std::string_view between =
        text.substr(begin, (i < markers.size() ? markers[i].begin : text.size()) - begin);
    if (after_end) between.remove_prefix(footer_size(between));
    if (before_start) {
      const size_t header = header_begin(between);
      // A file begins with its first header, whatever that says.
      between = between.substr(0, i == 0 && header <= kFar ? 0 : header);
    }
    if (before_end) between = without_last_words(between);
    if (!between.empty()) made.kept.push_back(between);
    if (i == markers.size()) break;
    begin = markers[i].end;
    made.books += markers[i].start || i == 0 || !markers[i - 1].start;
  }
  size_t kept = 0;
  for (const std::string_view piece : made.kept) kept += piece.size();
  made.dropped = static_cast<int64_t>(text.size() - kept);
  return made;
}

}  // namespace syncopate::corpora
