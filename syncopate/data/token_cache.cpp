#include "syncopate/data/token_cache.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "syncopate/base/ordered_work.h"
#include "syncopate/data/token_file.h"

namespace syncopate::data {
namespace {

namespace fs = std::filesystem;
using corpora::Split;

/// Another number whenever the same files, settings and vocabulary would become other tokens than before.
constexpr int kTokensVersion = 1;

std::string split_name(Split split) { return std::string(corpora::name_of(split)); }

/// What became of a batch of documents.
struct TokenBatch {
  Split split = Split::kTrain;
  std::vector<int32_t> pieces;
  size_t bytes = 0;  ///< of text
};

}  // namespace

TokenCache::TokenCache(fs::path folder, CachedCorpus corpus, Display display)
    : corpus_(std::move(corpus)),
      display_(display),
      kept_(std::move(folder), reader().files(), corpus_.source.path.string(), display.waiting) {}

corpora::CorpusReader TokenCache::reader() const {
  return corpora::CorpusReader(corpus_.source, corpus_.validation);
}

/// All that decides what is kept beside the files' contents.
nlohmann::json TokenCache::whole(const std::string& what) const {
  const corpora::CorpusSource& source = corpus_.source;
  return {{"version", kTokensVersion},
          {"path", source.path.string()},  // which the notes name
          {"documents", source.documents},
          {"text", source.text},
          {"encoding", source.form.encoding},
          {"separator", source.form.separator},
          {"share", corpus_.validation.share},
          {"validation", corpus_.validation.path.string()},
          {"what", what}};
}

std::string TokenCache::vocabulary(const std::string& what,
                                   const std::function<std::string(corpora::CorpusReader&)>& train) {
  return kept_.text(whole(what), [&] {
    corpora::CorpusReader read = reader();
    return train(read);
  });
}

CachedTokens TokenCache::tokens(const std::string& what, int64_t size, const MakeAppend& make_append) {
  KeptFolder::Recipe recipe{.what = whole(what),
                            .names = {},
                            .room = 1.2 * expected_bytes(static_cast<double>(bytes()), size),
                            .make = [&](const fs::path& folder) { return make(folder, size, make_append); }};
  for (const Split split : corpora::kSplits) recipe.names.push_back(split_name(split));
  const KeptFolder::Entry kept = kept_.entry(recipe);
  const auto of = [&](Split split) { return kept.files[static_cast<size_t>(split)]; };
  CachedTokens found{.train = of(Split::kTrain),
                     .validation = of(Split::kValidation),
                     .test = of(Split::kTest),
                     .notes = kept.note.at("notes").get<std::vector<std::string>>()};
  found.notes.insert(found.notes.end(), kept.notes.begin(), kept.notes.end());
  return found;
}

nlohmann::json TokenCache::make(const fs::path& folder, int64_t size, const MakeAppend& make_append) {
  corpora::CorpusReader reader = this->reader();
  const std::vector<std::string> notes = corpus_.look(reader);
  std::array<std::optional<TokenFileWriter>, std::size(corpora::kSplits)> writers;
  for (const Split split : corpora::kSplits)
    writers[static_cast<size_t>(split)].emplace(token_file(folder, split_name(split)), size);
  constexpr int64_t kMegabyte = 1'000'000;
  const auto whole = static_cast<int64_t>(bytes());
  Progress progress(display_.progress, whole / kMegabyte, "tokens of megabyte");
  int64_t read = 0;
  OrderedWork<corpora::DocumentBatch, TokenBatch> work(
      worthwhile_threads(),
      [&] {
        return [append = make_append()](corpora::DocumentBatch& batch) {
          TokenBatch made{.split = batch.split, .pieces = {}, .bytes = batch.text.size()};
          for (const std::string_view document : batch.documents()) append(document, made.pieces);
          return made;
        };
      },
      [&](TokenBatch made) {
        writers[static_cast<size_t>(made.split)]->append(made.pieces);
        read += static_cast<int64_t>(made.bytes);
        progress.expect(std::max(whole, read) / kMegabyte);  // more than the files have where they are packed
        progress.update(read / kMegabyte, 0, {});
      });
  reader.read([&](corpora::DocumentBatch batch) { work.add(std::move(batch)); });
  work.finish();
  progress.clear();
  for (auto& writer : writers) writer->finish();
  return {{"notes", notes}};
}

}  // namespace syncopate::data
