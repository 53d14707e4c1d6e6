#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace syncopate::data {

/// Appends the numbers of some documents' pieces, one document after the other, to a stream.
using AppendPieces = std::function<void(std::span<const std::string> documents, std::vector<int32_t>& into)>;

/// All documents as one stream of pieces, made on all processors. `append` is called on contiguous parts of
/// the documents, on several threads at once, and what it gives is joined in their order: it must not depend
/// on where the parts begin. The first failure is thrown.
std::vector<int32_t> token_stream(std::span<const std::string> documents, const AppendPieces& append);

/// Part `index` of a stream of `size` cut into blocks of `length`, the last of which may be shorter.
std::span<const int32_t> block_of(const std::vector<int32_t>& stream, int64_t length, int64_t index);

}  // namespace syncopate::data
