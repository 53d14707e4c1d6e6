#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A validation split: a share of the training data, chosen by content, that a run looks at instead of the
// test split when it chooses (when to stop, which model to keep).
namespace syncopate::corpora {

/// What decides on which side content falls. Two texts: those of a pair.
uint64_t validation_key(std::string_view content, std::string_view second = {});

/// Which examples are held out, one flag for each: about `share` of them, one at least. It depends on the
/// keys alone, not on their order, and equal keys fall on one side. Throws DataError when that leaves nothing
/// on one of the sides.
std::vector<char> held_out_for_validation(const std::vector<uint64_t>& keys, double share);

/// Moves the items whose flag is set out of `items`; both keep their order.
template <typename Item>
std::vector<Item> take_out(std::vector<Item>& items, const std::vector<char>& flags) {
  std::vector<Item> taken, left;
  for (size_t i = 0; i < items.size(); ++i) (flags[i] != 0 ? taken : left).push_back(std::move(items[i]));
  items = std::move(left);
  return taken;
}

/// A share of fewer documents would be a matter of luck.
inline constexpr size_t kFewDocuments = 20;

/// What hold_out_documents took. The counts are of documents, or of blocks before neighbours are joined.
struct HeldOutDocuments {
  std::vector<std::string> documents;
  std::string unit;  ///< what is counted: "documents" or "blocks of text"
  size_t taken = 0, total = 0;
};

/// Holds out documents or, where there are fewer than kFewDocuments, blocks of their text; what is left of a
/// document between two of those is a document of its own. Returns what is held out.
HeldOutDocuments hold_out_documents(std::vector<std::string>& documents, double share);

}  // namespace syncopate::corpora
