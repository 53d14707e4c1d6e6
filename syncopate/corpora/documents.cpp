#include "syncopate/corpora/documents.h"

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/table.h"

namespace syncopate::corpora {
namespace {

/// Calls `use` for each line of `text`, without its end; one after the last line break counts if not empty.
template <typename Use>
void for_each_line(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    use(text.substr(0, end));
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

/// Whether a line is "*** <word> OF ...", with or without the blank.
bool is_marker(std::string_view line, std::string_view word) {
  if (!line.starts_with("***")) return false;
  const size_t start = line.find_first_not_of("* ");
  if (start == line.npos) return false;
  line.remove_prefix(start);
  return line.starts_with(word) && line.substr(word.size()).starts_with(" OF ");
}

bool has_paragraphs(std::string_view text) {
  bool any = false, blank_after = false, found = false;
  for_each_line(text, [&](std::string_view line) {
    const bool blank = trim(line).empty();
    found = found || (!blank && blank_after);
    any = any || !blank;
    blank_after = blank && any;
  });
  return found;
}

Documents lines_of(std::string_view text) {
  Documents documents;
  for_each_line(text, [&](std::string_view line) {
    line = trim(line);
    if (line.empty()) {
      ++documents.empty;
    } else {
      documents.texts.emplace_back(line);
    }
  });
  return documents;
}

Documents paragraphs_of(std::string_view text) {
  Documents documents;
  std::string paragraph;
  const auto end = [&] {
    if (!paragraph.empty()) documents.texts.push_back(std::exchange(paragraph, {}));
  };
  for_each_line(text, [&](std::string_view line) {
    line = trim(line);
    if (line.empty()) return end();
    if (!paragraph.empty()) paragraph += ' ';
    paragraph += line;
  });
  end();
  return documents;
}

}  // namespace

std::string_view without_gutenberg(std::string_view text) {
  size_t begin = 0, end = text.size();
  for_each_line(text, [&](std::string_view line) {
    if (line.empty() || line[0] != '*') return;
    const auto at = static_cast<size_t>(line.data() - text.data());
    if (begin == 0 && is_marker(line, "START")) begin = std::min(at + line.size() + 1, text.size());
    if (end == text.size() && is_marker(line, "END")) end = at;
  });
  return begin <= end ? text.substr(begin, end - begin) : text;
}

Documents part_documents(std::string_view text, std::string_view how) {
  const bool paragraphs = how == "blank" || (how == "auto" && has_paragraphs(text));
  return paragraphs ? paragraphs_of(text) : lines_of(text);
}

Documents read_documents(const std::filesystem::path& path, std::string_view how, const std::string& column) {
  Documents documents;
  const std::string ending = lower_ending(path);
  if (ending == ".csv" || ending == ".jsonl") {
    const Table table(path, ending == ".csv" ? TableForm::kCsv : TableForm::kJsonLines);
    const size_t texts = table.column(column.empty() ? "text" : column);
    for (size_t row = 0; row < table.rows(); ++row) {
      const std::string_view text = trim(table.cell(row, texts));
      if (text.empty()) {
        ++documents.empty;
      } else {
        documents.texts.emplace_back(text);
      }
    }
  } else {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    const std::string bytes = read_file(path, "text");
    std::string_view text = bytes;
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    documents = part_documents(without_gutenberg(text), how);
  }
  if (documents.texts.empty()) {
    throw DataError("{} holds no text; give a file with documents to learn from", path.string());
  }
  return documents;
}

}  // namespace syncopate::corpora
