#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/corpus_files.h"
#include "syncopate/corpora/validation.h"

namespace syncopate::corpora {

/// Neighbouring documents of one split, about a mebibyte of them.
struct DocumentBatch {
  Split split = Split::kTrain;
  std::vector<char> text;    ///< one document behind the other
  std::vector<size_t> ends;  ///< of each document in `text`

  void add(std::string_view document) {
    text.insert(text.end(), document.begin(), document.end());
    ends.push_back(text.size());
  }
  bool full() const { return text.size() >= size_t{1} << 20; }
  bool empty() const { return ends.empty(); }
  std::vector<std::string_view> documents() const;
};

/// What of a corpus is looked at to make choices, beside its test split.
struct ValidationSource {
  double share = 0;            ///< of the training documents
  std::filesystem::path path;  ///< or a corpus of its own
};

/// The documents that load_corpus and hold_out_documents give for training, of a corpus that is read again
/// and again instead of being kept: a few bytes stay for each document. Only where so few documents have a
/// share held out that it is taken from within them, their texts stay.
class CorpusReader {
 public:
  /// Finds the files and throws as load_corpus does; reads none.
  CorpusReader(CorpusSource source, ValidationSource validation);

  std::vector<std::filesystem::path> files() const;  ///< all that are read, in a fixed order

  /// Calls `use` with the documents of all splits. A split's batches come in its order. Throws DataError.
  using UseBatch = std::function<void(DocumentBatch)>;
  void read(const UseBatch& use);

  // What the first reading, by whoever asks first, has found.
  const std::vector<std::string>& notes();        ///< the files', in load_corpus's order
  const std::vector<std::string>& later_notes();  ///< those of the validation split's own files
  const HeldOutDocuments& held_out();             ///< for validation; without the documents
  const std::vector<uint64_t>& keys_of(
      Split split);  ///< where validation has files of its own: of it and test

 private:
  void part();  ///< the first reading
  void part_own();
  void part_few();

  CorpusSource source_;
  ValidationSource validation_;
  CorpusSource own_source_;  ///< of the validation split
  CorpusFiles files_, own_files_;
  bool parted_ = false;
  std::vector<std::string> notes_, later_notes_;
  HeldOutDocuments held_out_;
  std::vector<Split> split_of_;                     ///< the documents of files_.train; empty: all train
  std::vector<std::string> few_train_, few_valid_;  ///< in the place of files_.train's where they were cut
  std::vector<char> own_held_;                      ///< of the documents of own_files_.train
  std::vector<uint64_t> test_keys_, valid_keys_;
};

}  // namespace syncopate::corpora
