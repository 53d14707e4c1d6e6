#include "syncopate/corpora/tables/json_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::corpora {
namespace {

constexpr std::string_view kSpace = " \t\r\n";  // JSON's

/// Reads one object without building it: values with parts of their own are no cells, and however deep they
/// are nested, nothing here follows them.
class ObjectReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonCells cells;

  /// False when `text` is not one object with something in it.
  bool read(std::string_view text) {
    cells.clear();
    depth_ = 0;
    return nlohmann::json::sax_parse(text, this) && !cells.empty();
  }

  // What the parser calls.
  bool null() override { return take({}); }
  bool boolean(bool value) override { return take(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return take(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return take(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& written) override { return take(written); }
  bool string(string_t& value) override { return take(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return ++depth_ > 0; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(size_t) override { return ++depth_ > 1; }  // the text itself is an object
  bool end_array() override { return depth_-- > 0; }
  bool key(string_t& name) override {
    if (depth_ == 1) cells.emplace_back(std::move(name), std::string());
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  bool take(std::string value) {
    if (depth_ == 1) cells.back().second = std::move(value);
    return depth_ > 0;
  }

  int64_t depth_ = 0;
};

/// The size of the object that `text` begins with, by its braces; npos when it does not end.
size_t object_size(std::string_view text) {
  int64_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return text.npos;
}

/// The array is cut into its objects before they are read, so that each is known by its line.
class ArrayReader {
 public:
  ArrayReader(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  void run(const std::function<bool(size_t, std::string_view)>& object) {
    take('[');
    if (next() == ']') refuse("the array is empty; give one with an object for each example");
    for (;;) {
      if (next() != '{') refuse("not a JSON object; each element of the array must be one");
      const size_t size = object_size(rest_);
      if (size == rest_.npos) refuse("the object that starts here does not end; fetch the file again");
      if (!object(line_, rest_.substr(0, size))) return;
      skip(size);
      if (next() == ']') break;
      if (next() != ',') refuse("expected a comma or the array's end behind an object");
      take(',');
    }
    take(']');
    if (next() != '\0') refuse("text goes on behind the array; give one array of objects");
  }

 private:
  /// The next character that is not white space; 0 at the end.
  char next() {
    skip(std::min(rest_.find_first_not_of(kSpace), rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }
  void take(char expected) {
    check(next() == expected, "what was seen is taken");
    skip(1);
  }
  void skip(size_t count) {
    line_ += static_cast<size_t>(
        std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(count), '\n'));
    rest_.remove_prefix(count);
  }
  [[noreturn]] void refuse(const char* why) const { throw DataError("{}:{}: {}", file_, line_, why); }

  std::string_view rest_;
  const std::string& file_;
  size_t line_ = 1;
};

}  // namespace

void for_each_json_row(std::string_view text, const std::string& file,
                       const std::function<bool(size_t line, size_t bytes, const JsonCells& cells)>& row) {
  ObjectReader reader;
  const auto use = [&](size_t line, std::string_view object) {
    if (!reader.read(object)) {
      throw DataError(
          "{}:{}: not a JSON object; give one object a line, or an array of objects, with the same keys",
          file, line);
    }
    return row(line, object.size(), reader.cells);
  };
  const size_t first = text.find_first_not_of(kSpace);
  if (first != text.npos && text[first] == '[') return ArrayReader(text, file).run(use);
  size_t number = 0;
  for (bool more = true; more;) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    ++number;
    more = (trim(line).empty() || use(number, line)) && end != text.npos;
    if (more) text.remove_prefix(end + 1);
  }
}

}  // namespace syncopate::corpora
