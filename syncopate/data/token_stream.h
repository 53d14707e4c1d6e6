#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::data {

/// Appends the numbers of a document's pieces to a stream. For one thread: it may remember words it has met.
using AppendDocument = std::function<void(std::string_view document, std::vector<int32_t>& into)>;
/// Gives each thread one. What they append depends on the document alone.
using MakeAppend = std::function<AppendDocument()>;

/// All documents as one stream of pieces, made on all processors. The first failure is thrown.
std::vector<int32_t> token_stream(std::span<const std::string> documents, const MakeAppend& make_append);

}  // namespace syncopate::data
