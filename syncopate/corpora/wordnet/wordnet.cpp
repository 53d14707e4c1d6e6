#include "syncopate/corpora/wordnet/wordnet.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/splits.h"

namespace syncopate::corpora {
namespace {

constexpr int64_t kTestExamples = 4000;
constexpr const char* kFiles[] = {"data.noun", "data.verb", "data.adj", "data.adv"};

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Synsets {
  std::vector<TextExample> examples;
  std::vector<uint64_t> keys;
};

/// One line is "00001740 03 n 01 entity 0 003 ~ ... | definition": offset, lexicographer file, part of
/// speech, words and pointers, definition. Lines that begin with two blanks are the licence.
void read_synset(std::string_view line, const std::string& where, Synsets& into) {
  constexpr const char* kAdvice = "reinstall wordnet-base or check the file";
  const size_t bar = line.find('|');
  const bool well_formed = line.size() > 13 && all_digits(line.substr(0, 8)) && line[8] == ' ' &&
                           all_digits(line.substr(9, 2)) && line[11] == ' ' &&
                           std::string_view("nvasr").find(line[12]) != std::string_view::npos &&
                           line[13] == ' ';
  if (!well_formed || bar == std::string_view::npos) {
    throw DataError("{}: not a WordNet synset (offset, file number, part of speech, ..., | definition); {}",
                    where, kAdvice);
  }
  const int64_t file = (line[9] - '0') * 10 + (line[10] - '0');
  const auto files = static_cast<int64_t>(lexicographer_files().size());
  if (file >= files) {
    throw DataError("{}: lexicographer file {} does not exist (0 to {}); {}", where, file, files - 1,
                    kAdvice);
  }
  const std::string_view definition = trim(line.substr(bar + 1));
  if (definition.empty()) throw DataError("{}: the synset has no definition; {}", where, kAdvice);
  into.keys.push_back(stable_hash(fmt::format("{}{}|{}", line[12], line.substr(0, 8), definition)));
  into.examples.push_back({.a = std::string(definition), .b = {}, .label = file});
}

void read_synsets(const std::filesystem::path& path, Synsets& into) {
  const std::string text = read_file(path, "WordNet file");
  const size_t before = into.examples.size();
  int64_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (line.starts_with("  ") || trim(line).empty()) continue;
    read_synset(line, fmt::format("{}:{}", path.string(), number), into);
  }
  if (into.examples.size() == before) {
    throw DataError("{} holds no synsets; reinstall wordnet-base or check the file", path.string());
  }
}

}  // namespace

const std::vector<std::string>& lexicographer_files() {
  static const std::vector<std::string> kNames{"adj.all",          "adj.pert",           "adv.all",
                                               "noun.Tops",        "noun.act",           "noun.animal",
                                               "noun.artifact",    "noun.attribute",     "noun.body",
                                               "noun.cognition",   "noun.communication", "noun.event",
                                               "noun.feeling",     "noun.food",          "noun.group",
                                               "noun.location",    "noun.motive",        "noun.object",
                                               "noun.person",      "noun.phenomenon",    "noun.plant",
                                               "noun.possession",  "noun.process",       "noun.quantity",
                                               "noun.relation",    "noun.shape",         "noun.state",
                                               "noun.substance",   "noun.time",          "verb.body",
                                               "verb.change",      "verb.cognition",     "verb.communication",
                                               "verb.competition", "verb.consumption",   "verb.contact",
                                               "verb.creation",    "verb.emotion",       "verb.motion",
                                               "verb.perception",  "verb.possession",    "verb.social",
                                               "verb.stative",     "verb.weather",       "adj.ppl"};
  return kNames;
}

void require_wordnet_file(const std::filesystem::path& path, const char* file) {
  std::error_code unreadable;  // says no more than that the file cannot be used
  if (path.empty()) {
    const std::filesystem::path built_in = std::filesystem::path(kWordNetFolder) / file;
    if (std::filesystem::exists(built_in, unreadable)) return;
    throw DataError(
        "WordNet's {} is missing; run `apt-get install wordnet-base`, or give the folder that holds it as "
        "the "
        "data path",
        built_in.string());
  }
  require_data(path, "WordNet's folder, or one of its files,");
  if (std::filesystem::exists(path / file, unreadable)) return;
  throw DataError(
      "{} has no {}: this task reads WordNet's files; give their folder as the data path, or choose the task "
      "csv for a table of your own",
      path.string(), file);
}

TextTask load_supersense(const std::filesystem::path& path, Purpose purpose) {
  const std::filesystem::path source = path.empty() ? std::filesystem::path(kWordNetFolder) : path;
  Synsets synsets;
  std::error_code unreadable;  // says no more than that the file cannot be used
  const bool one_file = std::filesystem::is_regular_file(source, unreadable);
  if (one_file) {
    read_synsets(source, synsets);
  } else {
    for (const char* file : kFiles) require_wordnet_file(path, file);
    for (const char* file : kFiles) read_synsets(source / file, synsets);
  }
  TextTask task{.name = "supersense", .labels = lexicographer_files(), .train = {}, .test = {}};
  if (one_file && purpose != Purpose::kTrain) {
    task.test = std::move(synsets.examples);
    return task;
  }
  const auto count = static_cast<int64_t>(synsets.examples.size());
  hold_out(std::move(synsets.examples), synsets.keys, std::clamp<int64_t>(count / 10, 1, kTestExamples),
           task);
  if (purpose == Purpose::kTrain && task.train.empty()) {
    throw DataError("{} holds a single synset, too few to train and test on; give all of WordNet",
                    source.string());
  }
  if (purpose != Purpose::kTrain) task.train.clear();
  return task;
}

}  // namespace syncopate::corpora
