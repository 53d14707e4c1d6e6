#include "syncopate/base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"

namespace syncopate {
namespace {

constexpr std::string_view kMagic = "\x1F\x8B";

/// zlib's state, freed at the end of the scope.
class Inflater {
 public:
  Inflater() { check(::inflateInit2(&stream_, kGzipAlone) == Z_OK, "zlib starts"); }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Appends what one member of the file holds and takes its bytes from `rest`. False when it is damaged.
  bool append_member(std::string_view& rest, std::string& into) {
    ::inflateReset(&stream_);
    int code = Z_OK;
    while (code == Z_OK) {
      constexpr size_t kPortion = size_t{1} << 20;  // memory grows as data come
      const size_t before = into.size();
      into.resize(before + std::min(std::max(before, kPortion / 16), kPortion * 64));
      const size_t given = std::min<size_t>(rest.size(), std::numeric_limits<uInt>::max());
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
      stream_.avail_in = static_cast<uInt>(given);
      stream_.next_out = reinterpret_cast<Bytef*>(into.data() + before);
      stream_.avail_out = static_cast<uInt>(into.size() - before);
      code = ::inflate(&stream_, Z_NO_FLUSH);
      into.erase(into.size() - stream_.avail_out);
      rest.remove_prefix(given - stream_.avail_in);
    }
    return code == Z_STREAM_END;
  }

  std::string reason() const { return stream_.msg != nullptr ? stream_.msg : "unexpected end of file"; }

 private:
  static constexpr int kGzipAlone = 15 + 16;  // zlib's largest window; its own format is not accepted
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with(kMagic); }

std::string read_plain_or_gzip(const std::filesystem::path& path, std::string_view what) {
  std::string bytes = read_file(path, what);
  if (!is_gzip(bytes)) return bytes;
  std::string text;
  Inflater inflater;
  // A file may have several members (`cat a.gz b.gz`); zeros behind the last are padding.
  for (std::string_view rest = bytes; rest.find_first_not_of('\0') != rest.npos;) {
    if (!inflater.append_member(rest, text)) {
      throw DataError("cannot read the {} {}: its gzip data are damaged ({}); fetch or compress it again",
                      what, path.string(), inflater.reason());
    }
  }
  return text;
}

}  // namespace syncopate
