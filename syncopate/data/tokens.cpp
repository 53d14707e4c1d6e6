#include "syncopate/data/tokens.h"

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"

namespace syncopate::data {

void MemoryTokens::read(int64_t begin, std::span<int32_t> into) const {
  check(begin >= 0 && begin + static_cast<int64_t>(into.size()) <= size(), "pieces are within their stream");
  std::copy_n(pieces_.begin() + begin, into.size(), into.begin());
}

uint64_t MemoryTokens::fingerprint(int64_t count) const {
  check(count >= 0 && count <= size(), "pieces are within their stream");
  return checksum(
      {reinterpret_cast<const char*>(pieces_.data()), static_cast<size_t>(count) * sizeof(int32_t)});
}

int64_t block_size(int64_t size, int64_t length, int64_t index) {
  check(index >= 0 && index * length < size, "an example's number is within its data set");
  return std::min(length, size - index * length);
}

std::vector<int32_t> block_of(const Tokens& tokens, int64_t size, int64_t length, int64_t index) {
  std::vector<int32_t> pieces(static_cast<size_t>(block_size(size, length, index)));
  tokens.read(index * length, pieces);
  return pieces;
}

}  // namespace syncopate::data
