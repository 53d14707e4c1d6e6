#include "syncopate/tasks/classified_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "syncopate/base/ordered_work.h"
#include "syncopate/base/progress.h"
#include "syncopate/data/token_file.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"
#include "syncopate/tasks/token_folder.h"
#include "syncopate/text/vocabulary.h"

namespace syncopate::tasks {
namespace {

/// Another number whenever the same files, settings and vocabulary would become other examples than before,
/// or be written in another way.
constexpr int kExamplesVersion = 2;

/// The files that are read; none where a part of the data is built in.
std::vector<std::filesystem::path> files_of(const spec::RunSpec& spec) {
  const auto files_at = [&](const std::string& path, corpora::Purpose purpose) {
    return corpora::files_of_task(text_source(spec.task.name, path, spec.task.columns()), purpose);
  };
  auto files = files_at(spec.task.data, corpora::Purpose::kTrain);
  if (files.empty() || spec.validation().path.empty()) return files;
  const auto own = files_at(spec.validation().path, corpora::Purpose::kEvaluate);
  files.insert(files.end(), own.begin(), own.end());
  return files;
}

/// Bytes that the tokens will take, about.
double expected_room(const ChosenTexts& texts, int64_t max_length, int64_t vocabulary) {
  constexpr double kBesides = 16;  // of an example
  const auto most = static_cast<double>(max_length) * static_cast<double>(data::width_of_pieces(vocabulary));
  return static_cast<double>(texts.size()) *
         (std::min(data::expected_bytes(texts.mean_letters(), vocabulary), most) + kBesides);
}

/// What `make` gives of each batch of texts, or of one split `only`, by several threads; `use` gets it in the
/// batches' order.
template <typename Made, typename Make, typename Use>
void for_each_made(const ChosenTexts& texts, std::optional<corpora::Split> only, size_t threads,
                   const Make& make, const Use& use) {
  OrderedWork<ChosenTexts::Batch, Made> work(
      threads, [&] { return [&](ChosenTexts::Batch& batch) { return make(batch); }; }, use);
  texts.read([&](ChosenTexts::Batch batch) { work.add(std::move(batch)); }, only);
  work.finish();
}

struct MadeExamples {
  corpora::Split split = corpora::Split::kTrain;
  data::MemoryExamples examples;
};

/// Gives `use` the texts as examples.
void tokenize(const ChosenTexts& texts, size_t threads, const text::WordPiece& tokenizer, int64_t max_length,
              const std::function<void(const MadeExamples&)>& use) {
  for_each_made<MadeExamples>(
      texts, std::nullopt, threads,
      [&](const ChosenTexts::Batch& batch) {
        MadeExamples made{.split = batch.split, .examples = {}};
        for (const corpora::TextExample& example : batch.texts)
          made.examples.append(example, tokenizer, max_length);
        return made;
      },
      use);
}

/// As many as there are splits, found by theirs.
template <typename Of>
using PerSplit = std::array<Of, std::size(corpora::kSplits)>;

size_t slot(corpora::Split split) { return static_cast<size_t>(split); }

}  // namespace

ClassifiedTexts::ClassifiedTexts(const spec::RunSpec& spec, bool speaks) : spec_(spec) {
  const std::string folder = token_folder(spec);
  if (folder.empty()) return;
  const std::vector<std::filesystem::path> files = files_of(spec);
  if (files.empty()) return;
  kept_ = std::make_unique<data::KeptFolder>(folder, files, spec.task.data, speaks);
  // A part that a seed draws is another with every seed, and nobody removes the files.
  const bool drawn = spec.task.limit > 0 && chosen_by_itself(spec);
  if (drawn || !worth_keeping(spec, kept_->bytes())) kept_.reset();
}

const ChosenTexts& ClassifiedTexts::chosen() { return chosen_ ? *chosen_ : chosen_.emplace(spec_); }

void ClassifiedTexts::forget() {
  if (!chosen_) return;
  chosen_.reset();
  ::malloc_trim(0);  // the allocator is told to keep what steps need again and again, which texts are not
}

size_t ClassifiedTexts::threads() const { return kept_ ? worthwhile_threads() : 1; }

std::string ClassifiedTexts::learn() {
  const text::VocabularyOptions options{.size = spec_.model.vocab_size};
  text::WordCounts all;
  for_each_made<text::WordCounts>(
      chosen(), corpora::Split::kTrain, threads(),
      [&](const ChosenTexts::Batch& batch) {
        text::WordCounts counts;
        for (const corpora::TextExample& example : batch.texts) {
          text::count_words(example.a, options, counts);
          text::count_words(example.b, options, counts);
        }
        return counts;
      },
      [&](const text::WordCounts& counts) { all.add(counts); });
  return fmt::format("{}", fmt::join(text::vocabulary_of_words(all, options), "\n"));
}

void ClassifiedTexts::use_memory(const std::string& why) {
  notes_.push_back(not_kept(spec_, why));
  kept_.reset();
}

/// What decides, besides the files, which texts are learned from and scored.
nlohmann::json ClassifiedTexts::choices() const {
  const spec::RunSpec::Validation validation = spec_.validation();
  const bool drawn = spec_.task.limit > 0;
  return {{"version", kExamplesVersion},
          {"task", spec_.task.name},
          {"path", spec_.task.data},  // which the notes name
          {"columns", {spec_.task.text, spec_.task.text_pair, spec_.task.label}},
          {"encoding", spec_.task.encoding},
          {"separator", spec_.task.separator},
          {"share", validation.share},
          {"validation", validation.path},
          {"limit", spec_.task.limit},
          {"test_limit", spec_.task.test_limit},
          {"seed", drawn ? spec_.train.seed : 0}};
}

std::string ClassifiedTexts::vocabulary(bool wanted) {
  if (kept_ && !wanted) return "";
  if (kept_) {
    try {
      nlohmann::json what = choices();
      what.erase("test_limit");
      what["learned"] = fmt::format("WordPiece of {} words", spec_.model.vocab_size);
      const std::string learned = kept_->text(what, [&] { return learn(); });
      forget();  // another worker may make the examples, and the files may be others by then
      return learned;
    } catch (const data::CacheUnavailable& error) {
      use_memory(error.what());
    }
  }
  chosen();  // by every rank at the same time, while one learns
  return wanted ? learn() : "";
}

ClassifiedExamples ClassifiedTexts::kept(const text::WordPiece& tokenizer, int64_t max_length) {
  const text::TextRules& rules = tokenizer.rules();
  data::KeptFolder::Recipe recipe{.what = choices(), .names = {}, .room = 0, .make = {}};
  recipe.what["vocabulary"] = fingerprint_of(tokenizer.words());
  recipe.what["rules"] = {rules.lower_case, rules.strip_accents, rules.split_cjk};
  recipe.what["max_length"] = max_length;
  for (const corpora::Split split : corpora::kSplits) {
    for (const std::string& name : data::files_of_examples(std::string(name_of(split))))
      recipe.names.push_back(name);
  }
  recipe.make = [&](const std::filesystem::path& folder) {
    const ChosenTexts& texts = chosen();
    kept_->require_room(expected_room(texts, max_length, tokenizer.size()));
    PerSplit<std::optional<data::ExamplesWriter>> writers;
    for (const corpora::Split split : corpora::kSplits)
      writers[slot(split)].emplace(folder, std::string(name_of(split)), tokenizer.size());
    Progress progress(progress_of_tokens(kept_->bytes()), texts.size(), "texts tokenized:");
    int64_t done = 0;
    tokenize(texts, threads(), tokenizer, max_length, [&](const MadeExamples& made) {
      writers[slot(made.split)]->append(made.examples);
      progress.update(done += made.examples.size(), 0, {});
    });
    nlohmann::json note{{"labels", texts.labels()},
                        {"notes", texts.notes()},
                        {"parts", nlohmann::json::array()},
                        {"validation", texts.validates()},
                        {"splits", nlohmann::json::array()}};
    for (const corpora::TestPart& part : texts.parts())
      note["parts"].push_back({part.name, part.begin, part.end});
    for (auto& writer : writers) note["splits"].push_back(writer->finish());
    return note;
  };
  const data::KeptFolder::Entry entry = kept_->entry(recipe);
  ClassifiedExamples found{.labels = entry.note.at("labels"),
                           .parts = {},
                           .notes = entry.note.at("notes"),
                           .train = {},
                           .test = {},
                           .validation = {}};
  for (const nlohmann::json& part : entry.note.at("parts"))
    found.parts.push_back({part.at(0), part.at(1), part.at(2)});
  found.notes.insert(found.notes.end(), entry.notes.begin(), entry.notes.end());
  const std::span<const std::shared_ptr<const data::TokenFile>> files = entry.files;
  const auto open = [&](corpora::Split split) {
    return data::open_examples(files.subspan(2 * slot(split), 2), entry.note.at("splits").at(slot(split)));
  };
  found.train = open(corpora::Split::kTrain);
  found.test = open(corpora::Split::kTest);
  if (entry.note.at("validation").get<bool>()) found.validation = open(corpora::Split::kValidation);
  return found;
}

ClassifiedExamples ClassifiedTexts::in_memory(const text::WordPiece& tokenizer, int64_t max_length) {
  const ChosenTexts& texts = chosen();
  PerSplit<std::shared_ptr<data::MemoryExamples>> made;
  for (auto& split : made) split = std::make_shared<data::MemoryExamples>();
  tokenize(texts, threads(), tokenizer, max_length,
           [&](const MadeExamples& batch) { made[slot(batch.split)]->append(batch.examples); });
  ClassifiedExamples found{.labels = texts.labels(),
                           .parts = texts.parts(),
                           .notes = texts.notes(),
                           .train = made[slot(corpora::Split::kTrain)],
                           .test = made[slot(corpora::Split::kTest)],
                           .validation = {}};
  if (texts.validates()) found.validation = made[slot(corpora::Split::kValidation)];
  return found;
}

ClassifiedExamples ClassifiedTexts::examples(const text::WordPiece& tokenizer, int64_t max_length) {
  ClassifiedExamples found;
  if (kept_) {
    try {
      found = kept(tokenizer, max_length);
    } catch (const data::CacheUnavailable& error) {
      use_memory(error.what());
    }
  }
  if (!found.train) found = in_memory(tokenizer, max_length);
  found.notes.insert(found.notes.end(), notes_.begin(), notes_.end());
  forget();
  return found;
}

}  // namespace syncopate::tasks
