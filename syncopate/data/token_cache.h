#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "syncopate/base/progress.h"
#include "syncopate/corpora/corpus_reader.h"
#include "syncopate/data/token_stream.h"
#include "syncopate/data/tokens.h"

namespace syncopate::data {

/// The cache cannot be used here (nobody may write there, the disk is full): what() says why, as the end of a
/// sentence.
class CacheUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The corpus whose tokens are kept.
struct CachedCorpus {
  corpora::CorpusSource source;
  corpora::ValidationSource validation;
  /// Looks at the corpus when its tokens are made: throws where it cannot be used, and gives sentences for
  /// the user, which are kept with the tokens.
  std::function<std::vector<std::string>(corpora::CorpusReader&)> look;
};

/// A corpus's splits as tokens.
struct CachedTokens {
  std::shared_ptr<const Tokens> train, validation, test;
  std::vector<std::string> notes;  ///< of CachedCorpus::look, then what became of the cache
};

/// Tokens of corpora in the files of a folder, so that the workers of a host share one copy and the next run
/// finds them. What is kept is named by a hash of all that decides it: the files' paths and contents, how
/// they are read and parted, the tokenizer, the format. It is made by whoever comes first while the others
/// wait, on all processors, beside its place and renamed when whole; what was damaged is made again. Nothing
/// in the folder is needed: it may be deleted while no run begins.
class TokenCache {
 public:
  /// How the user is told what goes on.
  struct Display {
    Progress::Style progress = Progress::Style::kNone;  ///< of making tokens
    bool waiting = false;                               ///< that another process makes them
  };
  /// Finds the corpus's files; throws as CorpusReader does.
  TokenCache(std::filesystem::path folder, CachedCorpus corpus, Display display);

  uintmax_t bytes() const;  ///< of the corpus's files

  /// What `train` learned from the corpus, here or before; `what` says all that decides it besides the
  /// corpus. Throws CacheUnavailable.
  std::string vocabulary(const std::string& what,
                         const std::function<std::string(corpora::CorpusReader&)>& train);

  /// The corpus by a tokenizer of `size` words, which `what` describes whole. Throws CacheUnavailable.
  CachedTokens tokens(const std::string& what, int64_t size, const MakeAppend& make_append);

 private:
  class Turn;
  std::string key_of(const std::string& what);  ///< reads the files where they are new
  CachedTokens open(const std::filesystem::path& entry) const;
  std::vector<std::string> make(const std::filesystem::path& entry, int64_t size,
                                const MakeAppend& make_append);
  void require_room() const;

  const std::filesystem::path folder_;
  const CachedCorpus corpus_;
  const Display display_;
  corpora::CorpusReader reader_;
  std::vector<std::string> stamps_;  ///< of the files when they were hashed
  std::string name_;  ///< of the corpus, by its files' paths: what its lock and its book of hashes are called
};

}  // namespace syncopate::data
