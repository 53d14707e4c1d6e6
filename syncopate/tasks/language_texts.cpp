#include "syncopate/tasks/language_texts.h"

#include <fmt/format.h>

#include <utility>

#include "syncopate/base/ordered_work.h"
#include "syncopate/tasks/language.h"
#include "syncopate/tasks/token_folder.h"

namespace syncopate::tasks {
namespace {

/// As validation_of does for documents in memory.
std::vector<std::string> look_at(corpora::CorpusReader& reader, const spec::RunSpec::Validation& validation) {
  std::vector<std::string> notes = reader.notes();
  if (!validation.path.empty()) {
    notes.insert(notes.end(), reader.later_notes().begin(), reader.later_notes().end());
    require_other_than_test(reader.keys_of(corpora::Split::kValidation),
                            reader.keys_of(corpora::Split::kTest));
  } else if (validation.on()) {
    const corpora::HeldOutDocuments& held = reader.held_out();
    notes.push_back(validation_note(held.taken, held.total, held.unit));
  }
  return notes;
}

text::WordCounts count_all(corpora::CorpusReader& reader, const LanguageTexts::Learning& learning) {
  text::WordCounts all;
  OrderedWork<corpora::DocumentBatch, text::WordCounts> work(
      worthwhile_threads(),
      [&] {
        return [&](corpora::DocumentBatch& batch) {
          text::WordCounts counts;
          for (const std::string_view document : batch.documents()) learning.count(document, counts);
          return counts;
        };
      },
      [&](const text::WordCounts& counts) { all.add(counts); });
  reader.read([&](corpora::DocumentBatch batch) {
    if (batch.split == corpora::Split::kTrain) work.add(std::move(batch));
  });
  work.finish();
  return all;
}

}  // namespace

LanguageTexts::LanguageTexts(const spec::RunSpec& spec, bool speaks) : spec_(spec) {
  const std::string folder = token_folder(spec);
  if (folder.empty()) return;
  const spec::RunSpec::Validation validation = spec.validation();
  const data::CachedCorpus corpus{
      .source = corpus_of(spec),
      .validation = {.share = validation.share, .path = validation.path},
      .look = [validation](corpora::CorpusReader& reader) { return look_at(reader, validation); }};
  const auto cache = [&](Progress::Style style) {
    return std::make_unique<data::TokenCache>(
        folder, corpus, data::TokenCache::Display{.progress = style, .waiting = speaks});
  };
  cache_ = cache(Progress::Style::kNone);
  if (!worth_keeping(spec, cache_->bytes())) cache_.reset();
  if (!cache_) return;
  if (const auto style = progress_of_tokens(cache_->bytes()); style != Progress::Style::kNone)
    cache_ = cache(style);
}

void LanguageTexts::use_memory(const std::string& why) {
  notes_.push_back(not_kept(spec_, why));
  cache_.reset();
}

void LanguageTexts::load() {
  if (corpus_) return;
  corpus_ = corpora::load_corpus(corpus_of(spec_), corpora::Purpose::kTrain);
  validation_ = validation_of(*corpus_, spec_);
}

std::string LanguageTexts::vocabulary(const Learning& learning, bool wanted) {
  if (cache_ && !wanted) return "";
  if (cache_) {
    try {
      return cache_->vocabulary(learning.what, [&](corpora::CorpusReader& reader) {
        return learning.learn(count_all(reader, learning));
      });
    } catch (const data::CacheUnavailable& error) {
      use_memory(error.what());
    }
  }
  load();
  if (!wanted) return "";
  text::WordCounts counts;
  for (const std::string& document : corpus_->train) learning.count(document, counts);
  return learning.learn(counts);
}

data::CachedTokens LanguageTexts::tokens(const std::string& what, int64_t size,
                                         const data::MakeAppend& make_append) {
  if (cache_) {
    try {
      data::CachedTokens found = cache_->tokens(what, size, make_append);
      if (!spec_.validation().on()) found.validation.reset();
      return found;
    } catch (const data::CacheUnavailable& error) {
      use_memory(error.what());
    }
  }
  load();
  const auto made = [&](const std::vector<std::string>& documents) {
    return std::make_shared<data::MemoryTokens>(data::token_stream(documents, make_append));
  };
  data::CachedTokens all{.train = made(corpus_->train),
                         .validation = validation_.empty() ? nullptr : made(validation_),
                         .test = made(corpus_->test),
                         .notes = corpus_->notes};
  all.notes.insert(all.notes.end(), notes_.begin(), notes_.end());
  corpus_.reset();
  validation_.clear();
  return all;
}

}  // namespace syncopate::tasks
