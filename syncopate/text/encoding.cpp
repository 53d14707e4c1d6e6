#include "syncopate/text/encoding.h"

#include <iconv.h>
#include <utf8proc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/base/letters.h"

namespace syncopate::text {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

int64_t line_of(std::string_view text, size_t at) {
  return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
}

std::string place_of(std::string_view bytes, size_t at, const std::string& file) {
  return fmt::format("{}:{}: byte {} of the file", file, line_of(bytes, at), at);
}

void refuse_zeros(std::string_view text, const std::string& file) {
  const size_t zero = text.find('\0');
  if (zero == text.npos) return;
  throw DataError(
      "{}:{}: there is a zero byte, which no text has; give a text file, or set encoding to what this one is "
      "in",
      file, line_of(text, zero));
}

/// One U+FFFD for every byte that is not UTF-8, and for every zero.
Decoded replace_others(std::string_view bytes) {
  Decoded made;
  made.text.reserve(bytes.size());
  const auto append = [&](std::string_view sound) {
    for (size_t zero = sound.find('\0'); zero != sound.npos; zero = sound.find('\0')) {
      made.text.append(sound.substr(0, zero)).append(kReplacement);
      ++made.replaced;
      sound.remove_prefix(zero + 1);
    }
    made.text += sound;
  };
  for (size_t wrong = first_not_utf8(bytes); wrong != bytes.npos; wrong = first_not_utf8(bytes)) {
    append(bytes.substr(0, wrong));
    made.text += kReplacement;
    ++made.replaced;
    bytes.remove_prefix(wrong + 1);
  }
  append(bytes);
  return made;
}

/// iconv's converter to UTF-8, closed at the end of the scope.
class Converter {
 public:
  explicit Converter(const std::string& encoding)
      : encoding_(encoding), handle_(::iconv_open("UTF-8", system_name(encoding).c_str())) {
    if (handle_ != kNone) return;
    throw ConfigError(
        "the encoding \"{}\" is not known; set encoding to utf-8, replace, latin-1, windows-1252, utf-16 or "
        "another that `iconv -l` lists",
        encoding);
  }
  ~Converter() { ::iconv_close(handle_); }
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  std::string run(std::string& bytes, const std::string& file) {
    std::string text(bytes.size() + bytes.size() / 2 + 16, '\0');
    char* in = bytes.data();
    size_t left = bytes.size(), done = 0;
    for (;;) {
      char* out = text.data() + done;
      size_t room = text.size() - done;
      const size_t outcome = ::iconv(handle_, left > 0 ? &in : nullptr, &left, &out, &room);
      done = text.size() - room;
      const bool failed = outcome == static_cast<size_t>(-1);
      if (failed && errno == E2BIG) {
        text.resize(text.size() * 2);
        continue;
      }
      if (failed) {
        throw DataError("{} ({:#04x}) is not {}; set encoding to what the file is in, or repair it there",
                        place_of(bytes, bytes.size() - left, file), static_cast<unsigned char>(*in),
                        encoding_);
      }
      if (left == 0) break;
    }
    text.resize(done);
    return text;
  }

 private:
  static std::string system_name(const std::string& encoding) {
    return encoding == "latin-1" ? "ISO-8859-1" : encoding;
  }

  inline static const iconv_t kNone = reinterpret_cast<iconv_t>(-1);  // NOLINT: POSIX says so
  const std::string& encoding_;
  iconv_t handle_;
};

}  // namespace

size_t first_not_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, bytes + at, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {  // most texts are mostly ASCII
        at += sizeof eight;
        continue;
      }
    }
    int32_t character = 0;
    const auto used =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &character);
    if (used <= 0) return at;
    at += static_cast<size_t>(used);
  }
  return text.npos;
}

void require_utf8(std::string_view text, const std::string& file) {
  refuse_zeros(text, file);  // first: other bytes of a binary file say less
  if (const size_t wrong = first_not_utf8(text); wrong != text.npos) {
    throw DataError(
        "{} ({:#04x}) is not UTF-8; set encoding to what the file is in (windows-1252 and latin-1 are "
        "common), or to replace, which puts U+FFFD in the place of such bytes and counts them",
        place_of(text, wrong, file), static_cast<unsigned char>(text[wrong]));
  }
}

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

Decoded decode(std::string bytes, const std::string& encoding, const std::string& file) {
  const std::string name = lower_letters(encoding);
  Decoded made;
  if (name == "replace") {
    made = replace_others(bytes);
  } else if (name == "utf-8" || name == "utf8") {
    require_utf8(bytes, file);
    made.text = std::move(bytes);
  } else {
    made.text = Converter(name).run(bytes, file);
  }
  if (made.text.starts_with(kByteOrderMark)) made.text.erase(0, kByteOrderMark.size());
  refuse_zeros(made.text, file);
  return made;
}

}  // namespace syncopate::text
