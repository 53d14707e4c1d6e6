#include "tests/support/image_files.h"

#include <zlib.h>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::test {

std::string cifar_records(int count, uint64_t seed) {
  Rng rng(seed);
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes.push_back(static_cast<char>(rng.below(10)));
    for (int k = 0; k < 3072; ++k) bytes.push_back(static_cast<char>(rng.below(256)));
  }
  return bytes;
}

std::string idx_file(const std::vector<int64_t>& sizes, uint64_t seed, bool body) {
  std::string bytes{0, 0, 8, static_cast<char>(sizes.size())};
  int64_t total = 1;
  for (const int64_t size : sizes) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(size >> shift & 0xFF));
    total *= size;
  }
  Rng rng(seed);
  for (int64_t i = 0; i < total && body; ++i) bytes.push_back(static_cast<char>(rng.below(10)));
  return bytes;
}

std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;  // the largest window, and gzip's header
  check(::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK,
        "zlib starts");
  std::string packed(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  check(::deflate(&stream, Z_FINISH) == Z_STREAM_END, "the bound is large enough");
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

}  // namespace syncopate::test
