#include "syncopate/corpora/corpus_reader.h"

#include <gtest/gtest.h>

#include <array>

#include "syncopate/base/error.h"
#include "syncopate/corpora/corpus.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using syncopate::test::TempDir;
using syncopate::test::write_text;
using Texts = std::vector<std::string>;

std::string lines(const std::string& word, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += word + " " + std::to_string(i * i) + (i % 10 == 3 ? "\n \n" : "\n");
  return text;
}

struct Parted {
  std::array<Texts, 3> splits;
  Texts notes;
  bool operator==(const Parted&) const = default;
};

/// As a task parts documents that it keeps.
Parted kept(const CorpusSource& source, const ValidationSource& validation) {
  Corpus corpus = load_corpus(source, Purpose::kTrain);
  Parted parted;
  if (!validation.path.empty()) {
    CorpusSource own = source;
    own.path = validation.path;
    Corpus loaded = load_corpus(own, Purpose::kEvaluate);
    parted.splits[1] = loaded.test;
    corpus.notes.insert(corpus.notes.end(), loaded.notes.begin(), loaded.notes.end());
  } else if (validation.share > 0) {
    const HeldOutDocuments held = hold_out_documents(corpus.train, validation.share);
    parted.splits[1] = held.documents;
    corpus.notes.push_back(held.unit + std::to_string(held.taken) + "/" + std::to_string(held.total));
  }
  parted.splits[0] = corpus.train;
  parted.splits[2] = corpus.test;
  parted.notes = corpus.notes;
  return parted;
}

Parted streamed(const CorpusSource& source, const ValidationSource& validation) {
  CorpusReader reader(source, validation);
  Parted parted;
  for (int pass = 0; pass < 2; ++pass) {  // the second gives the same
    parted.splits = {};
    reader.read([&](const DocumentBatch& batch) {
      for (const std::string_view document : batch.documents())
        parted.splits[static_cast<size_t>(batch.split)].emplace_back(document);
    });
  }
  parted.notes = reader.notes();
  parted.notes.insert(parted.notes.end(), reader.later_notes().begin(), reader.later_notes().end());
  const HeldOutDocuments& held = reader.held_out();
  if (validation.share > 0)
    parted.notes.push_back(held.unit + std::to_string(held.taken) + "/" + std::to_string(held.total));
  if (!validation.path.empty()) {
    const auto keys = [](const Texts& texts) {
      std::vector<uint64_t> all;
      for (const std::string& text : texts) all.push_back(validation_key(text));
      return all;
    };
    EXPECT_EQ(reader.keys_of(Split::kValidation), keys(parted.splits[1]));
    EXPECT_EQ(reader.keys_of(Split::kTest), keys(parted.splits[2]));
  }
  return parted;
}

TEST(CorpusReader, GivesWhatIsKeptOtherwise) {
  const TempDir folder;
  write_text(folder / "one.txt", lines("a line", 300));
  write_text(folder / "long.txt", std::string(3, ' ') + std::string(30000, 'x') + "\n" + lines("y", 4));
  std::filesystem::create_directories(folder / "named");
  write_text(folder / "named/train.txt", lines("train", 200));
  write_text(folder / "named/more-train.csv", "id,text\n1,\"a, b\"\n2,\n3,c\n");
  write_text(folder / "named/valid.txt", "x y\nz\n\nnext\n");
  write_text(folder / "named/other.txt", "left alone\n");
  std::filesystem::create_directories(folder / "unnamed");
  write_text(folder / "unnamed/a.txt", lines("a", 40));
  write_text(folder / "unnamed/b.txt", "\xEF\xBB\xBF" + lines("b\r", 40));
  const std::vector<ValidationSource> validations{{},
                                                  {.share = 0.1, .path = {}},
                                                  {.share = 0, .path = folder / "named/valid.txt"},
                                                  {.share = 0, .path = folder / "unnamed"}};
  for (const std::string name : {"one.txt", "long.txt", "named", "unnamed"}) {
    for (const std::string documents : {"auto", "line", "blank"}) {
      for (const ValidationSource& validation : validations) {
        const CorpusSource source{.path = folder / name, .documents = documents};
        SCOPED_TRACE(name + " " + documents + " " + std::to_string(validation.share) +
                     validation.path.string());
        Parted expected;
        std::string refused;
        try {
          expected = kept(source, validation);
        } catch (const DataError& error) {
          refused = error.what();
        }
        if (!refused.empty()) {
          EXPECT_EQ(test::sentence<DataError>([&] { streamed(source, validation); }), refused);
          continue;
        }
        const Parted found = streamed(source, validation);
        EXPECT_EQ(found.splits, expected.splits);
        EXPECT_EQ(found.notes, expected.notes);
      }
    }
  }
  const CorpusSource one{.path = folder / "one.txt"};
  EXPECT_NE(streamed(one, {}), streamed(one, {.share = 0.1, .path = {}})) << "the foil";
}

TEST(CorpusReader, LargeTextsComeInBatches) {
  const TempDir folder;
  write_text(folder / "one.txt", lines(std::string(99, 'w'), 40000));
  const CorpusSource source{.path = folder / "one.txt"};
  CorpusReader reader(source, {});
  Texts train;
  size_t batches = 0;
  reader.read([&](const DocumentBatch& batch) {
    ++batches;
    if (batch.split != Split::kTrain) return;
    for (const std::string_view document : batch.documents()) train.emplace_back(document);
  });
  EXPECT_GE(batches, 4U);
  EXPECT_EQ(train, load_corpus(source, Purpose::kTrain).train);
}

}  // namespace
}  // namespace syncopate::corpora
