#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "syncopate/corpora/text_file.h"

namespace syncopate::corpora {

/// A text without the headers and footers of Project Gutenberg's books in it.
struct BookText {
  std::vector<std::string_view> kept;  ///< stretches of the text, in order
  int64_t dropped = 0;                 ///< bytes
  int64_t books = 0;                   ///< whose header or footer was left out
};

/// Leaves out, book by book, what surrounds the lines `*** START OF ... PROJECT GUTENBERG ...` and
/// `*** END OF ...`: a header before the one, the licence behind the other. These speak of Project Gutenberg
/// all the time; what lies further from such a word than they ever do is somebody's text and stays.
BookText without_gutenberg(std::string_view text, const LookedAt& looked_at = {});

}  // namespace syncopate::corpora
