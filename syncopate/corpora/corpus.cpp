#include "syncopate/corpora/corpus.h"

#include <utility>

#include "syncopate/corpora/validation.h"
#include "syncopate/corpora/wordnet/wordnet.h"

namespace syncopate::corpora {
namespace {

std::vector<std::string> take_texts(std::vector<TextExample> examples) {
  std::vector<std::string> texts;
  texts.reserve(examples.size());
  for (TextExample& example : examples) texts.push_back(std::move(example.a));
  return texts;
}

std::vector<std::string> read_all(const std::vector<std::filesystem::path>& files, const CorpusSource& source,
                                  std::vector<std::string>& notes) {
  std::vector<std::string> texts;
  for_each_document(files, source, notes, [&](std::string_view document) { texts.emplace_back(document); });
  return texts;
}

}  // namespace

Corpus load_corpus(const CorpusSource& source, Purpose purpose) {
  Corpus corpus;
  if (source.path.empty()) {
    TextTask definitions = load_supersense({}, purpose);
    corpus.train = take_texts(std::move(definitions.train));
    corpus.test = take_texts(std::move(definitions.test));
    corpus.notes.emplace_back("the documents are WordNet's definitions; set a data path to use your own");
    return corpus;
  }
  CorpusFiles files = find_corpus_files(source, purpose);
  corpus.notes = std::move(files.notes);
  corpus.test = read_all(files.test, source, corpus.notes);
  corpus.train = read_all(files.train, source, corpus.notes);
  if (files.hold_out) {
    std::vector<uint64_t> keys;
    for (const std::string& text : corpus.train) keys.push_back(test_key(text));
    corpus.test = take_out(corpus.train, held_out_for_test(keys, source, purpose, corpus.notes));
    if (purpose != Purpose::kTrain) corpus.train.clear();
  }
  return corpus;
}

}  // namespace syncopate::corpora
