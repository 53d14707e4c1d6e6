#include "syncopate/tasks/classified_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <utility>

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
constexpr int kExamplesVersion = 1;

corpora::TextSource source_of(const spec::RunSpec& spec) {
  return text_source(spec.task.name, spec.task.data, spec.task.columns());
}

corpora::TextSource validation_source(const spec::RunSpec& spec, const std::vector<std::string>& labels) {
  corpora::TextSource source = text_source(spec.task.name, spec.validation().path, spec.task.columns());
  source.labels = labels;
  return source;
}

uint64_t key_of_texts(const corpora::TextExample& example) {
  return corpora::validation_key(example.a, example.b);
}

std::vector<uint64_t> keys_of_texts(const std::vector<corpora::TextExample>& examples) {
  std::vector<uint64_t> keys;
  for (const corpora::TextExample& example : examples) keys.push_back(key_of_texts(example));
  return keys;
}

/// Bytes that an example will take, about.
double expected_room(const corpora::TextExample& text, int64_t max_length, int64_t vocabulary) {
  constexpr double kBesides = 16;
  const auto letters = static_cast<double>(text.a.size() + text.b.size());
  const auto most = static_cast<double>(max_length) * static_cast<double>(data::width_of_pieces(vocabulary));
  return std::min(data::expected_bytes(letters, vocabulary), most) + kBesides;
}

std::vector<std::string> notes_of(const corpora::TextTask& task) {
  std::vector<std::string> notes = task.notes;
  notes.insert(notes.end(), task.training_notes.begin(), task.training_notes.end());
  return notes;
}

std::vector<std::filesystem::path> files_of(const spec::RunSpec& spec) {
  auto files = corpora::files_of_task(source_of(spec), corpora::Purpose::kTrain);
  if (files.empty() || spec.validation().path.empty()) return files;
  const auto own = corpora::files_of_task(validation_source(spec, {}), corpora::Purpose::kEvaluate);
  files.insert(files.end(), own.begin(), own.end());
  return files;
}

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

ClassifiedTexts::Loaded& ClassifiedTexts::load() {
  if (loaded_) return *loaded_;
  Loaded found{.task = corpora::load_task(source_of(spec_), corpora::Purpose::kTrain), .validation = {}};
  corpora::TextTask& task = found.task;
  found.validation = hold_out_validation(task.train, spec_, key_of_texts, "examples", task.notes);
  if (!spec_.validation().path.empty()) {
    corpora::TextTask own =
        corpora::load_task(validation_source(spec_, task.labels), corpora::Purpose::kEvaluate);
    task.notes.insert(task.notes.end(), own.notes.begin(), own.notes.end());
    require_other_than_test(keys_of_texts(own.test), keys_of_texts(task.test));
    found.validation = std::move(own.test);
  }
  keep_subset(task.train, spec_);
  keep_test_sample(task, spec_);
  return loaded_.emplace(std::move(found));
}

void ClassifiedTexts::forget() {
  if (!loaded_) return;
  loaded_.reset();
  ::malloc_trim(0);  // the allocator is told to keep what steps need again and again, which texts are not
}

std::string ClassifiedTexts::learn() {
  return fmt::format("{}", fmt::join(text::train_vocabulary(corpora::texts_of(load().task.train),
                                                            {.size = spec_.model.vocab_size}),
                                     "\n"));
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
  load();  // by every rank at the same time, while one learns
  return wanted ? learn() : "";
}

ClassifiedExamples ClassifiedTexts::kept(const text::WordPiece& tokenizer, int64_t max_length) {
  const std::vector<std::string> splits{"train", "test", "validation"};
  const text::TextRules& rules = tokenizer.rules();
  data::KeptFolder::Recipe recipe{.what = choices(), .names = {}, .room = 0, .make = {}};
  recipe.what["vocabulary"] = fingerprint_of(tokenizer.words());
  recipe.what["rules"] = {rules.lower_case, rules.strip_accents, rules.split_cjk};
  recipe.what["max_length"] = max_length;
  for (const std::string& split : splits) {
    for (const std::string& name : data::files_of_examples(split)) recipe.names.push_back(name);
  }
  recipe.make = [&](const std::filesystem::path& folder) {
    Loaded& loaded = load();
    corpora::TextTask& task = loaded.task;
    nlohmann::json note{{"labels", task.labels},
                        {"notes", notes_of(task)},
                        {"parts", nlohmann::json::array()},
                        {"validation", !loaded.validation.empty()},
                        {"splits", nlohmann::json::array()}};
    for (const corpora::TestPart& part : task.parts)
      note["parts"].push_back({part.name, part.begin, part.end});
    std::vector<corpora::TextExample>* const texts[] = {&task.train, &task.test, &loaded.validation};
    int64_t all = 0, before = 0;
    double room = 0;
    for (const auto* split : texts) {
      all += static_cast<int64_t>(split->size());
      for (const corpora::TextExample& text : *split)
        room += expected_room(text, max_length, tokenizer.size());
    }
    kept_->require_room(room);
    Progress progress(progress_of_tokens(kept_->bytes()), all, "texts tokenized:");
    for (size_t i = 0; i < splits.size(); ++i) {
      const auto made =
          data::tokenized_together(std::exchange(*texts[i], {}), tokenizer, max_length,
                                   [&](int64_t done) { progress.update(before + done, 0, {}); });
      before += made->size();
      note["splits"].push_back(made->write(folder, splits[i], tokenizer.size()));
    }
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
  const auto open = [&](size_t split) {
    return data::open_examples(files.subspan(2 * split, 2), entry.note.at("splits").at(split));
  };
  found.train = open(0);
  found.test = open(1);
  if (entry.note.at("validation").get<bool>()) found.validation = open(2);
  return found;
}

ClassifiedExamples ClassifiedTexts::examples(const text::WordPiece& tokenizer, int64_t max_length) {
  ClassifiedExamples found;
  if (kept_) {
    try {
      found = kept(tokenizer, max_length);
    } catch (const data::CacheUnavailable& error) {
      forget();  // some texts may be gone already
      use_memory(error.what());
    }
  }
  if (!found.train) {
    Loaded& loaded = load();
    corpora::TextTask& task = loaded.task;
    found.labels = task.labels;
    found.parts = task.parts;
    found.notes = notes_of(task);
    const auto made = [&](std::vector<corpora::TextExample>& texts) {
      return data::tokenized(std::exchange(texts, {}), tokenizer, max_length);
    };
    const bool validates = !loaded.validation.empty();
    found.train = made(task.train);
    found.test = made(task.test);
    if (validates) found.validation = made(loaded.validation);
  }
  found.notes.insert(found.notes.end(), notes_.begin(), notes_.end());
  forget();
  return found;
}

}  // namespace syncopate::tasks
