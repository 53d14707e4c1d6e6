#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "syncopate/codec/activation.h"
#include "syncopate/parallel/pipeline/activation_codec.h"
#include "syncopate/parallel/pipeline/buffer_memory.h"

namespace syncopate::parallel {

/// What one end of an edge remembers of the hidden states of examples. Both ends make the same calls in the
/// same order, so what one finds the other finds too. An example stays once it is there; where the budget has
/// no room for another, that one is never remembered.
class ActivationBuffer {
 public:
  /// Where an example's values lie.
  struct Place {
    int64_t id = 0;
    uint64_t content = 0;
    int64_t rows = 0;
    int64_t offset = -1;  ///< -1: the budget had no room
  };
  struct Visit {
    const Place* place;  ///< valid as long as the buffer, until it is loaded
    bool first;
  };

  ActivationBuffer(const ActivationOptions& options, const ActivationEdge& edge);

  /// Sets room aside on an example's first visit. Throws DataError for an id that comes back with another
  /// content.
  Visit visit(int64_t id, uint64_t content, int64_t rows, int64_t channels);
  /// Throws ConfigError where the budget is too small for examples of so many rows, all of one batch.
  void check_room(std::span<const int64_t> rows, int64_t channels) const;

  /// The values themselves where they are kept as they are (fp32), else null.
  float* values(const Place& place);
  void read(const Place& place, float* into) const;
  /// Rounded to what is kept: the same at both ends.
  void write(const Place& place, const float* from);

  void read_ahead(std::span<const int64_t> ids) const;

  int64_t used_bytes() const { return static_cast<int64_t>(memory_->used()); }
  int64_t examples_kept() const { return kept_; }
  int64_t examples_beyond() const { return static_cast<int64_t>(places_.size()) - kept_; }

  uint64_t digest() const;
  std::vector<std::string_view> pieces() const;  ///< all of it; valid until a call of another kind
  void restore(std::string_view bytes);          ///< throws DataError, before anything is changed

 private:
  size_t bytes_of(int64_t rows, int64_t channels) const;
  void write_table() const;

  ActivationOptions options_;
  std::optional<codec::ActivationBits> bits_;  ///< of what is kept in few
  std::unique_ptr<BufferMemory> memory_;
  std::unordered_map<int64_t, Place> places_;
  int64_t channels_ = 0, kept_ = 0;
  mutable std::string table_;
};

}  // namespace syncopate::parallel
