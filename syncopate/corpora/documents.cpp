#include "syncopate/corpora/documents.h"

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/gutenberg.h"
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

void append_lines(std::string_view text, Documents& documents) {
  for_each_line(text, [&](std::string_view line) {
    line = trim(line);
    if (line.empty()) {
      ++documents.empty;
    } else {
      documents.texts.emplace_back(line);
    }
  });
}

void append_paragraphs(std::string_view text, Documents& documents) {
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
}

/// Each of the texts parted; what separates documents is the same in all.
Documents part_all(const std::vector<std::string_view>& texts, std::string_view how) {
  const bool paragraphs =
      how == "blank" || (how == "auto" && std::any_of(texts.begin(), texts.end(), has_paragraphs));
  Documents documents;
  for (const std::string_view text : texts)
    paragraphs ? append_paragraphs(text, documents) : append_lines(text, documents);
  return documents;
}

Documents rows_of(const Table& table, const std::string& column) {
  Documents documents;
  const size_t texts = table.column(column.empty() ? "text" : column);
  for (size_t row = 0; row < table.rows(); ++row) {
    const std::string_view text = trim(table.cell(row, texts));
    if (text.empty()) {
      ++documents.empty;
    } else {
      documents.texts.emplace_back(text);
    }
  }
  documents.notes = table.notes();
  return documents;
}

}  // namespace

bool is_table(const std::filesystem::path& path) {
  const std::string ending = lower_ending(path);
  return ending == ".csv" || ending == ".tsv" || ending == ".jsonl" || ending == ".json";
}

Documents part_documents(std::string_view text, std::string_view how) { return part_all({text}, how); }

Documents read_documents(const std::filesystem::path& path, std::string_view how, const std::string& column,
                         const FileForm& form) {
  Documents documents;
  if (is_table(path)) {
    documents = rows_of(Table(path, Table::form_of(path, /*quoted_tabs=*/true), form), column);
  } else {
    const TextFile file = read_text_file(path, "text", form.encoding);
    const BookText books = without_gutenberg(file.text);
    documents = part_all(books.kept, how);
    documents.bytes = static_cast<int64_t>(file.text.size());
    documents.dropped = books.dropped;
    documents.books = books.books;
    documents.notes = file.notes;
  }
  if (documents.texts.empty()) {
    throw DataError("{} holds no text; give a file with documents to learn from", path.string());
  }
  return documents;
}

}  // namespace syncopate::corpora
