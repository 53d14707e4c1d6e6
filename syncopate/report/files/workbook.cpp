#include <xlsxwriter.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/report/files/files.h"
#include "syncopate/report/files/sheets.h"
#include "syncopate/report/plain_text.h"

namespace syncopate::report {
namespace {

constexpr size_t kLongestText = 32767;  // a cell holds no more characters

/// XML has no control characters but these, and a cell no endless text.
std::string cell_text(const std::string& text) {
  std::string plain;
  for (const char letter : text) {
    if (static_cast<unsigned char>(letter) >= 32 || letter == '\n' || letter == '\t') plain += letter;
  }
  if (plain.size() <= kLongestText) return plain;
  plain.resize(kLongestText - 3);
  return utf8(plain).substr(0, kLongestText);
}

void fill(lxw_workbook* book, lxw_format* bold, const Sheet& sheet) {
  lxw_worksheet* page = workbook_add_worksheet(book, sheet.name.c_str());
  const auto columns = static_cast<lxw_col_t>(sheet.head.size());
  // Row by row and set up before: the library then keeps no more than a row in memory.
  for (lxw_col_t column = 0; column < columns; ++column) {
    size_t width = columns_of(sheet.head[column]);
    for (size_t row = 0; row < std::min<size_t>(sheet.rows.size(), 200); ++row) {
      if (const auto* text = std::get_if<std::string>(&sheet.rows[row][column]))
        width = std::max(width, columns_of(*text));
    }
    worksheet_set_column(page, column, column, static_cast<double>(std::clamp<size_t>(width + 2, 8, 60)),
                         nullptr);
  }
  worksheet_freeze_panes(page, 1, 1);
  if (!sheet.rows.empty())
    worksheet_autofilter(page, 0, 0, static_cast<lxw_row_t>(sheet.rows.size()),
                         static_cast<lxw_col_t>(columns - 1));
  for (lxw_col_t column = 0; column < columns; ++column)
    worksheet_write_string(page, 0, column, cell_text(sheet.head[column]).c_str(), bold);
  for (size_t row = 0; row < sheet.rows.size(); ++row) {
    const auto line = static_cast<lxw_row_t>(row + 1);
    for (lxw_col_t column = 0; column < columns; ++column) {
      const Cell& cell = sheet.rows[row][column];
      if (const auto* number = std::get_if<double>(&cell)) {
        worksheet_write_number(page, line, column, *number, nullptr);
      } else if (const auto* text = std::get_if<std::string>(&cell)) {
        // A string, whatever it begins with: nothing is computed.
        worksheet_write_string(page, line, column, cell_text(*text).c_str(), nullptr);
      }
    }
  }
}

}  // namespace

void write_workbook(const std::filesystem::path& file, const Results& results) {
  std::filesystem::path beside = file;
  beside += ".part";
  // The library would tell the terminal, too.
  if (std::FILE* probe = std::fopen(beside.c_str(), "we")) {
    std::fclose(probe);
  } else {
    throw DataError("cannot write {}: {}", utf8(file.string()), std::strerror(errno));
  }
  lxw_workbook_options options{};
  options.constant_memory = LXW_TRUE;
  lxw_workbook* book = workbook_new_opt(beside.c_str(), &options);
  if (book == nullptr) throw DataError("cannot write {}: there is no memory for it", utf8(file.string()));
  lxw_format* bold = workbook_add_format(book);
  format_set_bold(bold);
  for (const Sheet& sheet : {arms_sheet(results), runs_sheet(results), about_sheet(results)})
    fill(book, bold, sheet);
  const lxw_error error = workbook_close(book);
  if (error != LXW_NO_ERROR || std::rename(beside.c_str(), file.c_str()) != 0) {
    std::remove(beside.c_str());
    throw DataError("cannot write {}: {}; choose another folder or free some space", utf8(file.string()),
                    error != LXW_NO_ERROR ? lxw_strerror(error) : "it cannot be put in its place");
  }
}

}  // namespace syncopate::report
