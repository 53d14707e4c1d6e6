#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "syncopate/base/progress.h"
#include "syncopate/corpora/corpus_reader.h"
#include "syncopate/data/kept_folder.h"
#include "syncopate/data/token_stream.h"
#include "syncopate/data/tokens.h"

namespace syncopate::data {

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
/// finds them (KeptFolder). What is kept is named by a hash of the files' paths and contents, how they are
/// read and parted, the tokenizer and the format; it is made on all processors.
class TokenCache {
 public:
  /// How the user is told what goes on.
  struct Display {
    Progress::Style progress = Progress::Style::kNone;  ///< of making tokens
    bool waiting = false;                               ///< that another process makes them
  };
  /// Finds the corpus's files; throws as CorpusReader does.
  TokenCache(std::filesystem::path folder, CachedCorpus corpus, Display display);

  uintmax_t bytes() const { return kept_.bytes(); }  ///< of the corpus's files

  /// What `train` learns from the corpus, or learned in an earlier run. `what` must describe everything
  /// besides the corpus that decides the result. Throws CacheUnavailable.
  std::string vocabulary(const std::string& what,
                         const std::function<std::string(corpora::CorpusReader&)>& train);

  /// The corpus as tokens of a tokenizer of `size` words, which `what` describes completely. Throws
  /// CacheUnavailable.
  CachedTokens tokens(const std::string& what, int64_t size, const MakeAppend& make_append);

 private:
  /// A new one each time: a reader remembers what it found, and the files may have changed since.
  corpora::CorpusReader reader() const;
  nlohmann::json whole(const std::string& what) const;
  nlohmann::json make(const std::filesystem::path& folder, int64_t size, const MakeAppend& make_append);

  const CachedCorpus corpus_;
  const Display display_;
  KeptFolder kept_;
};

}  // namespace syncopate::data
