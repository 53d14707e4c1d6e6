#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace syncopate::data {

/// A stream of pieces' numbers: in memory, or in a file that all workers of a host share. Immutable: any
/// number of threads may read at once.
class Tokens {
 public:
  /// How many of the last pieces a data set may leave out of its blocks.
  static constexpr int64_t kMostDropped = 16;

  virtual ~Tokens() = default;
  virtual int64_t size() const = 0;
  /// Copies the pieces from `begin` on.
  virtual void read(int64_t begin, std::span<int32_t> into) const = 0;
  /// checksum_of the first `count` pieces, which are all but kMostDropped at least.
  virtual uint64_t fingerprint(int64_t count) const = 0;
};

class MemoryTokens : public Tokens {
 public:
  explicit MemoryTokens(std::vector<int32_t> pieces) : pieces_(std::move(pieces)) {}
  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }
  void read(int64_t begin, std::span<int32_t> into) const override;
  uint64_t fingerprint(int64_t count) const override;

 private:
  std::vector<int32_t> pieces_;
};

/// How many pieces block `index` has, of a stream of `size` cut into blocks of `length`; the last of them may
/// be shorter.
int64_t block_size(int64_t size, int64_t length, int64_t index);

/// These pieces.
std::vector<int32_t> block_of(const Tokens& tokens, int64_t size, int64_t length, int64_t index);

}  // namespace syncopate::data
