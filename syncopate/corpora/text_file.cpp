#include "syncopate/corpora/text_file.h"

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/gzip.h"
#include "syncopate/base/letters.h"
#include "syncopate/text/encoding.h"

namespace syncopate::corpora {
namespace {

using namespace std::string_view_literals;

/// Files that are often taken for texts, by their first bytes.
struct Binary {
  std::string_view magic;
  const char* name;
  const char* advice;
};

constexpr Binary kBinaries[] = {
    {"ARROW1"sv, "an Arrow file", "save its rows as JSON lines"},
    {"PK\x03\x04"sv, "a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV in UTF-8"},
    {"%PDF-"sv, "a PDF", "extract its text first, with pdftotext"},
    {"BZh"sv, "compressed with bzip2", "decompress it with bunzip2, or use gzip"},
    {"\xFD"
     "7zXZ\x00"sv,
     "compressed with xz", "decompress it with unxz, or use gzip"},
    {"\x28\xB5\x2F\xFD"sv, "compressed with zstd", "decompress it with unzstd, or use gzip"},
    {"7z\xBC\xAF"sv, "a 7z archive", "unpack it"},
    {"\x89HDF"sv, "an HDF5 file", "save its rows as CSV"},
    {"SQLite format 3\x00"sv, "an SQLite database", "export the table as CSV"},
};

/// Whether the bytes are UTF-16: by its byte order mark, or since every other byte of the beginning is zero.
bool looks_like_utf16(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) return true;
  const std::string_view beginning = bytes.substr(0, 4096);
  size_t zeros[2] = {0, 0};
  for (size_t i = 0; i < beginning.size(); ++i) zeros[i % 2] += beginning[i] == '\0';
  const auto [few, many] = std::minmax(zeros[0], zeros[1]);
  return many > beginning.size() / 4 && few * 16 <= many;
}

void refuse_binary(std::string_view bytes, const std::filesystem::path& path) {
  if (bytes.starts_with("PAR1"))
    throw DataError("{} is a Parquet file, which is not read; {}", path.string(), parquet_advice(path));
  for (const Binary& binary : kBinaries) {
    if (bytes.starts_with(binary.magic))
      throw DataError("{} is {}, not a text file; {}", path.string(), binary.name, binary.advice);
  }
}

void refuse_utf16(std::string_view bytes, const std::filesystem::path& path) {
  if (!looks_like_utf16(bytes)) return;
  const char* const name = bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF") ? "utf-16"
                           : bytes.starts_with('\0')                                      ? "utf-16be"
                                                                                          : "utf-16le";
  throw DataError(
      "{0} is in UTF-16; set encoding to {1}, or convert it: iconv -f {1} -t utf-8 {0} > new-file",
      path.string(), name);
}

/// As text::require_utf8, a portion of the file at a time.
void require_utf8(const MappedFile& file, const std::filesystem::path& path) {
  for (std::string_view rest = file.bytes(); !rest.empty();) {
    size_t size = std::min(kPortion, rest.size());
    while (size < rest.size() && (static_cast<unsigned char>(rest[size]) & 0xC0) == 0x80 && size > 0) --size;
    const std::string_view portion = rest.substr(0, size);
    if (size == 0 || portion.find('\0') != portion.npos || text::first_not_utf8(portion) != portion.npos) {
      text::require_utf8(file.bytes(), path.string());  // says where
      return;
    }
    rest.remove_prefix(size);
    file.let_go();
  }
}

bool is_utf8(std::string_view name) { return name == "utf-8" || name == "utf8"; }

}  // namespace

char separator_of(const FileForm& form) {
  const std::string& name = form.separator;
  if (name == "auto") return '\0';
  if (name == "tab" || name == "\\t") return '\t';
  const bool fits = name.size() == 1 && static_cast<unsigned char>(name[0]) < 0x80 && name[0] != '"' &&
                    name[0] != '\n' && name[0] != '\r' && name[0] != '\0';
  if (fits) return name[0];
  throw ConfigError("separator must be auto, tab or one character such as ; or |, got \"{}\"", name);
}

std::string parquet_advice(const std::filesystem::path& path) {
  std::filesystem::path lines = path;
  lines.replace_extension(".jsonl");
  return fmt::format(
      "convert it: python3 -c \"import pandas; pandas.read_parquet('{}').to_json('{}', orient='records', "
      "lines=True)\"",
      path.string(), lines.string());
}

TextFile read_text_file(const std::filesystem::path& path, std::string_view what,
                        const std::string& encoding) {
  std::string bytes = read_plain_or_gzip(path, what);
  refuse_binary(bytes, path);
  const std::string name = lower_letters(encoding);
  if (is_utf8(name) || name == "replace") refuse_utf16(bytes, path);
  text::Decoded decoded = text::decode(std::move(bytes), name, path.string());
  TextFile file{.text = std::move(decoded.text), .notes = {}};
  if (decoded.replaced > 0) {
    file.notes.push_back(fmt::format(
        "{}: {} replaced by U+FFFD", path.string(),
        decoded.replaced == 1 ? "1 byte that is not UTF-8 was"
                              : fmt::format("{} bytes that are not UTF-8 were", decoded.replaced)));
  }
  return file;
}

OpenText::OpenText(const std::filesystem::path& path, std::string_view what, const std::string& encoding) {
  if (is_utf8(lower_letters(encoding))) {
    mapped_ = std::make_unique<MappedFile>(path, what);
    if (is_gzip(mapped_->bytes())) mapped_.reset();
  }
  if (!mapped_) {
    read_ = read_text_file(path, what, encoding);
    text_ = read_.text;
    return;
  }
  refuse_binary(mapped_->bytes(), path);
  refuse_utf16(mapped_->bytes(), path);
  require_utf8(*mapped_, path);
  text_ = text::without_byte_order_mark(mapped_->bytes());
}

void OpenText::let_go() const {
  if (mapped_) mapped_->let_go();
}

void OpenText::require_unchanged() const {
  if (mapped_) mapped_->require_unchanged();
}

}  // namespace syncopate::corpora
