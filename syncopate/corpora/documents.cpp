#include "syncopate/corpora/documents.h"

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/gutenberg.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/tables/table.h"

namespace syncopate::corpora {
namespace {

/// Calls `use` for each line of `text`, without its end, until it returns false; one after the last line
/// break counts if not empty.
template <typename Use>
void for_each_line(std::string_view text, const LookedAt& looked_at, const Use& use) {
  size_t since = 0;  // bytes
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (!use(text.substr(0, end)) || end == text.npos) return;
    text.remove_prefix(end + 1);
    since += end + 1;
    if (looked_at && since >= kPortion) {
      looked_at();
      since = 0;
    }
  }
}

bool has_paragraphs(std::string_view text, const LookedAt& looked_at) {
  bool any = false, blank_after = false, found = false;
  for_each_line(text, looked_at, [&](std::string_view line) {
    const bool blank = trim(line).empty();
    found = !blank && blank_after;
    any = any || !blank;
    blank_after = blank && any;
    return !found;
  });
  return found;
}

/// Counts a document and gives it to `use`, unless it is empty.
void give(std::string_view document, const UseDocument& use, DocumentsNoted& noted) {
  if (document.empty()) {
    ++noted.empty;
  } else {
    ++noted.count;
    use(document);
  }
}

void give_lines(std::string_view text, const LookedAt& looked_at, const UseDocument& use,
                DocumentsNoted& noted) {
  for_each_line(text, looked_at, [&](std::string_view line) {
    give(trim(line), use, noted);
    return true;
  });
}

void give_paragraphs(std::string_view text, const LookedAt& looked_at, const UseDocument& use,
                     DocumentsNoted& noted) {
  std::string paragraph;
  const auto end = [&] {
    if (!paragraph.empty()) give(paragraph, use, noted);
    paragraph.clear();
  };
  for_each_line(text, looked_at, [&](std::string_view line) {
    line = trim(line);
    if (line.empty()) end();
    if (!line.empty() && !paragraph.empty()) paragraph += ' ';
    paragraph += line;
    return true;
  });
  end();
}

/// Each of the texts parted; what separates documents is the same in all.
DocumentsNoted give_all(const std::vector<std::string_view>& texts, std::string_view how,
                        const LookedAt& looked_at, const UseDocument& use) {
  const auto parted = [&](std::string_view text) { return has_paragraphs(text, looked_at); };
  const bool paragraphs =
      how == "blank" || (how == "auto" && std::any_of(texts.begin(), texts.end(), parted));
  DocumentsNoted noted;
  for (const std::string_view text : texts)
    paragraphs ? give_paragraphs(text, looked_at, use, noted) : give_lines(text, looked_at, use, noted);
  return noted;
}

DocumentsNoted give_rows(const TableFile& table, const std::string& column, const UseDocument& use) {
  DocumentsNoted noted;
  const size_t texts = table.column(column.empty() ? "text" : column);
  table.for_each_row([&](const TableFile::Row& row) { give(trim(row.cells[texts]), use, noted); });
  noted.notes = table.notes();
  return noted;
}

/// `read` gives documents to what it is given.
template <typename Read>
Documents kept(const Read& read) {
  Documents documents;
  const DocumentsNoted noted =
      read([&](std::string_view document) { documents.texts.emplace_back(document); });
  static_cast<DocumentsNoted&>(documents) = noted;
  return documents;
}

}  // namespace

bool is_table(const std::filesystem::path& path) {
  const std::string ending = lower_ending(path);
  return ending == ".csv" || ending == ".tsv" || ending == ".jsonl" || ending == ".json";
}

Documents part_documents(std::string_view text, std::string_view how) {
  return kept([&](const UseDocument& use) { return give_all({text}, how, {}, use); });
}

DocumentsNoted for_each_document(const std::filesystem::path& path, std::string_view how,
                                 const std::string& column, const FileForm& form, const UseDocument& use) {
  DocumentsNoted noted;
  if (is_table(path)) {
    noted = give_rows(TableFile(path, TableColumns::form_of(path, /*quoted_tabs=*/true), form), column, use);
  } else {
    const OpenText file(path, "text", form.encoding);
    const LookedAt let_go = [&file] { file.let_go(); };
    const BookText books = without_gutenberg(file.text(), let_go);
    noted = give_all(books.kept, how, let_go, use);
    noted.bytes = static_cast<int64_t>(file.text().size());
    noted.dropped = books.dropped;
    noted.books = books.books;
    noted.notes = file.notes();
  }
  if (noted.count == 0) {
    throw DataError("{} holds no text; give a file with documents to learn from", path.string());
  }
  return noted;
}

Documents read_documents(const std::filesystem::path& path, std::string_view how, const std::string& column,
                         const FileForm& form) {
  return kept([&](const UseDocument& use) { return for_each_document(path, how, column, form, use); });
}

}  // namespace syncopate::corpora
