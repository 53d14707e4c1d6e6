#include "syncopate/report/files/page.h"

#include "syncopate/base/error.h"

// The built page is part of the program: a report needs no file beside it.
__asm__(
    ".section .rodata\n"
    ".global syncopate_page_begin\n"
    ".global syncopate_page_end\n"
    "syncopate_page_begin:\n"
    ".incbin \"" SYNCOPATE_PAGE
    "\"\n"
    "syncopate_page_end:\n"
    ".previous\n");
extern "C" const char syncopate_page_begin[], syncopate_page_end[];

namespace syncopate::report {
namespace {

std::string_view bundle() {
  return {syncopate_page_begin, static_cast<size_t>(syncopate_page_end - syncopate_page_begin)};
}

std::string replaced(std::string_view place, std::string_view text) {
  const std::string_view whole = bundle();
  const size_t at = whole.find(place);
  check(at != std::string_view::npos, "the page has no place for what goes into it");
  std::string result;
  result.reserve(whole.size() + text.size());
  return result.append(whole.substr(0, at)).append(text).append(whole.substr(at + place.size()));
}

}  // namespace

std::string page(std::string_view results) {
  constexpr std::string_view kBefore = "<script type=\"application/json\" id=\"results\">";
  std::string element(kBefore);
  element.reserve(results.size() + results.size() / 64 + 100);
  // Inside of JSON "<" stands in texts alone, where its number means the same; the parser of HTML sees no
  // tag.
  for (const char letter : results) {
    if (letter == '<') {
      element += "\\u003c";
    } else {
      element += letter;
    }
  }
  return replaced(fmt::format("{}null</script>", kBefore), element + "</script>");
}

std::string live_page(std::string_view events) {
  return replaced("<head>", "<head><meta name=\"syncopate-live\" content=\"" + std::string(events) + "\">");
}

}  // namespace syncopate::report
