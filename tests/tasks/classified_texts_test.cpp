#include "syncopate/tasks/classified_texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "syncopate/base/error.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"
#include "tests/support/tasks.h"

namespace syncopate::tasks {
namespace {

namespace fs = std::filesystem;
using Change = std::function<void(spec::RunSpec&)>;

class KeptExamples : public testing::Test {
 protected:
  spec::RunSpec spec_of(const Change& change = {}) {
    spec::RunSpec spec;
    spec.task.name = "csv";
    spec.task.data = data_;
    spec.task.text = "text";
    spec.task.label = "label";
    spec.task.cache = (folder_ / "cache").string();
    spec.model.vocab_size = 200;
    if (change) change(spec);
    spec.complete();
    return spec;
  }
  ClassifiedExamples examples(const Change& change = {}, int64_t max_length = 24) {
    const spec::RunSpec spec = spec_of(change);
    return ClassifiedTexts(spec, false).examples(tokenizer_, max_length);
  }
  static bool says(const ClassifiedExamples& found, const std::string& part) {
    return std::any_of(found.notes.begin(), found.notes.end(),
                       [&](const std::string& note) { return note.find(part) != note.npos; });
  }
  fs::path entry() const {
    for (const auto& found : fs::directory_iterator(folder_ / "cache")) {
      if (found.is_directory()) return found.path();
    }
    return {};
  }

  test::TempDir folder_;
  std::string data_ = test::small_table(folder_ / "data");
  text::WordPiece tokenizer_{test::vocabulary_of({"the", "a", "b", "cat", "dog"}), text::rules_for(true)};
};

TEST_F(KeptExamples, AreThoseOfTheSettingsThatDecideThem) {
  const auto in_memory = [](spec::RunSpec& spec) { spec.task.cache = "off"; };
  const ClassifiedExamples first = examples();
  EXPECT_TRUE(says(first, "tokens kept in "));
  EXPECT_EQ(first.train->fingerprint(), examples(in_memory).train->fingerprint());
  const Change changes[] = {[](spec::RunSpec& spec) { spec.task.limit = 5; },
                            [](spec::RunSpec& spec) { spec.task.test_limit = 2; },
                            [](spec::RunSpec& spec) { spec.task.validation = "0.2"; }};
  for (const Change& change : changes) {
    const ClassifiedExamples kept = examples(change), again = examples(change);
    const ClassifiedExamples memory = examples([&](spec::RunSpec& spec) {
      change(spec);
      in_memory(spec);
    });
    EXPECT_TRUE(says(kept, "tokens kept in ")) << "another entry";
    EXPECT_TRUE(says(again, "tokens read from "));
    for (const ClassifiedExamples* found : {&kept, &again}) {
      EXPECT_EQ(found->labels, memory.labels);
      EXPECT_EQ(found->train->fingerprint(), memory.train->fingerprint());
      EXPECT_EQ(found->test->fingerprint(), memory.test->fingerprint());
      EXPECT_EQ(found->validation == nullptr, memory.validation == nullptr);
    }
    EXPECT_TRUE(memory.train->fingerprint() != first.train->fingerprint() ||
                memory.test->fingerprint() != first.test->fingerprint())
        << "the foil";
  }
  EXPECT_TRUE(says(examples({}, 7), "tokens kept in ")) << "another length";
  EXPECT_TRUE(says(examples([](spec::RunSpec& spec) { spec.train.seed = 9; }), "tokens read from "))
      << "a seed that draws nothing";
  const auto drawn = [](int64_t seed) {
    return [seed](spec::RunSpec& spec) {
      spec.task.limit = 5;
      spec.train.seed = seed;
    };
  };
  EXPECT_NE(examples(drawn(3)).train->fingerprint(), examples(drawn(4)).train->fingerprint());
}

TEST_F(KeptExamples, AreThoseOfTheTokenizer) {
  const uint64_t before = examples().train->fingerprint();
  const text::WordPiece usual = std::move(tokenizer_);
  tokenizer_ = text::WordPiece(test::vocabulary_of({"the", "a", "b", "cat", "mouse"}), text::rules_for(true));
  EXPECT_TRUE(says(examples(), "tokens kept in ")) << "as many words, others";
  tokenizer_ = text::WordPiece(usual.words(), text::rules_for(false));
  EXPECT_TRUE(says(examples(), "tokens kept in ")) << "the same words, other rules";
  tokenizer_ = text::WordPiece(usual.words(), usual.rules());
  EXPECT_TRUE(says(examples(), "tokens read from "));
  EXPECT_EQ(examples().train->fingerprint(), before);
}

// More than threads take at a time, so that what they make is joined.
TEST_F(KeptExamples, AreThoseOfManyRows) {
  std::string table = "text,label\n";
  const std::vector<std::string> words{"the", "a", "b", "cat", "dog", "mouse"};
  for (size_t row = 0; row < 5000; ++row) {
    for (size_t k = 0; k <= row % 7; ++k) table += words[(row * 31 + k * k + row / 9) % words.size()] + " ";
    table += row % 3 == 0 ? ",x\n" : ",y\n";
  }
  test::write_text(folder_ / "many.csv", table);
  const auto many = [this](const std::string& cache) {
    return [this, cache](spec::RunSpec& spec) {
      spec.task.data = (folder_ / "many.csv").string();
      spec.task.validation = "0.1";
      if (!cache.empty()) spec.task.cache = cache;
    };
  };
  examples(many(""));
  const ClassifiedExamples kept = examples(many("")), memory = examples(many("off"));
  ASSERT_TRUE(says(kept, "tokens read from "));
  const std::pair<const data::TextExamples*, const data::TextExamples*> splits[] = {
      {kept.train.get(), memory.train.get()},
      {kept.test.get(), memory.test.get()},
      {kept.validation.get(), memory.validation.get()}};
  for (const auto& [mine, theirs] : splits) {
    ASSERT_EQ(mine->size(), theirs->size());
    EXPECT_EQ(mine->fingerprint(), theirs->fingerprint());
    for (int64_t id = 0; id < mine->size(); ++id) {
      const data::TextExamples::Example one = mine->at(id), other = theirs->at(id);
      ASSERT_EQ(one.begin, other.begin);
      ASSERT_EQ(one.length, other.length);
      ASSERT_EQ(one.label, other.label);
    }
  }
}

TEST_F(KeptExamples, KeepTheirPartsAndClasses) {
  const fs::path mnli = folder_ / "mnli";
  fs::create_directories(mnli);
  const std::string head = "sentence1\tsentence2\tgold_label\n", row = "a cat\tthe dog\t";
  test::write_text(mnli / "train.tsv", head + row + "neutral\nb\ta\tentailment\ndog\tb\tcontradiction\n");
  test::write_text(mnli / "dev_matched.tsv", head + row + "neutral\n");
  test::write_text(mnli / "dev_mismatched.tsv", head + row + "entailment\nb\tb\tneutral\n");
  const auto of_mnli = [&](const std::string& cache) {
    return [&, cache](spec::RunSpec& spec) {
      spec.task.name = "mnli";
      spec.task.data = mnli.string();
      spec.task.text = spec.task.label = "";
      if (!cache.empty()) spec.task.cache = cache;
    };
  };
  examples(of_mnli(""));
  const ClassifiedExamples kept = examples(of_mnli("")), memory = examples(of_mnli("off"));
  ASSERT_TRUE(says(kept, "tokens read from "));
  EXPECT_EQ(kept.parts, memory.parts);
  EXPECT_EQ(kept.parts, (std::vector<corpora::TestPart>{{"matched", 0, 1}, {"mismatched", 1, 3}}));
  EXPECT_EQ(kept.labels, memory.labels);
  EXPECT_EQ(kept.test->fingerprint(), memory.test->fingerprint());
}

TEST_F(KeptExamples, AreThoseOfTheFilesAsTheyAre) {
  const Change in_memory = [](spec::RunSpec& spec) { spec.task.cache = "off"; };
  const ClassifiedExamples before = examples(in_memory);
  const spec::RunSpec spec = spec_of();
  ClassifiedTexts texts(spec, false);
  texts.vocabulary(true);
  const fs::path file = fs::path(data_) / "train.csv";  // which changes while others wait for the vocabulary
  test::write_text(file, test::read_text(file) + "the dog," + before.labels.front() + "\n");
  const ClassifiedExamples made = texts.examples(tokenizer_, 24), memory = examples(in_memory);
  EXPECT_EQ(made.train->size(), before.train->size() + 1);
  EXPECT_EQ(made.train->fingerprint(), memory.train->fingerprint());
}

TEST_F(KeptExamples, AreMadeAgainWhereTheyAreDamaged) {
  const uint64_t sound = examples().train->fingerprint();
  for (const char* name : {"train.tokens", "train-examples.tokens", "test-examples.tokens", "corpus.json"}) {
    const fs::path path = entry() / name;
    std::string bytes = test::read_text(path);
    bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
    test::write_text(path, bytes);
    const ClassifiedExamples again = examples();
    EXPECT_TRUE(says(again, "was damaged and has been made again")) << name;
    EXPECT_EQ(again.train->fingerprint(), sound);
    EXPECT_FALSE(says(examples(), "damaged"));
  }
}

TEST_F(KeptExamples, TellWordsFromLabelsAndKeepPairsApart) {
  test::write_text(folder_ / "pairs.csv", "one,two,class\na b,cat,yes\ndog,the dog a,no\nthe,b,yes\n");
  const auto pairs = [this](spec::RunSpec& spec) {
    spec.task.data = (folder_ / "pairs.csv").string();
    spec.task.text = "one";
    spec.task.text_pair = "two";
    spec.task.label = "class";
  };
  examples(pairs);
  const ClassifiedExamples found = examples(pairs);
  ASSERT_TRUE(says(found, "tokens read from "));
  const ClassifiedExamples memory = examples([&](spec::RunSpec& spec) {
    pairs(spec);
    spec.task.cache = "off";
  });
  EXPECT_EQ(found.labels, (std::vector<std::string>{"no", "yes"}));
  ASSERT_EQ(found.train->size(), memory.train->size());
  EXPECT_EQ(found.train->tokens(), memory.train->tokens());
  for (int64_t id = 0; id < found.train->size(); ++id) {
    const data::TextExamples::Example mine = found.train->at(id), theirs = memory.train->at(id);
    EXPECT_EQ(mine.seconds, theirs.seconds);
    EXPECT_EQ(mine.label, theirs.label);
    std::vector<int32_t> words(static_cast<size_t>(mine.length)), others(static_cast<size_t>(theirs.length));
    found.train->read(mine, words);
    memory.train->read(theirs, others);
    EXPECT_EQ(words, others);
    EXPECT_GT(mine.seconds, 0);
  }
}

TEST_F(KeptExamples, KeepAVocabularyThatIsLearned) {
  const spec::RunSpec spec = spec_of(), off = spec_of([](spec::RunSpec&s) { s.task.cache = "off"; });
  const std::string learned = ClassifiedTexts(spec, false).vocabulary(true);
  EXPECT_EQ(ClassifiedTexts(off, false).vocabulary(true), learned);
  EXPECT_EQ(ClassifiedTexts(off, false).vocabulary(false), "");
  EXPECT_EQ(ClassifiedTexts(spec, false).vocabulary(false), learned) << "there already";
  const spec::RunSpec less = spec_of([](spec::RunSpec& s) { s.model.vocab_size = 60; });
  EXPECT_NE(ClassifiedTexts(less, false).vocabulary(true), learned) << "the foil";
}

TEST_F(KeptExamples, SayWhatIsWrongAsMemoryDoes) {
  for (const char* cache : {"off", "cache"}) {
    const auto complaint = [&](const Change& change) -> std::string {
      try {
        examples([&](spec::RunSpec& spec) {
          spec.task.cache = cache == std::string("off") ? "off" : (folder_ / cache).string();
          change(spec);
        });
      } catch (const Error& error) {
        return error.what();
      }
      return "";
    };
    EXPECT_NE(complaint([](spec::RunSpec& spec) { spec.task.data = "/absent"; }).find("does not exist"),
              std::string::npos);
    EXPECT_NE(
        complaint([](spec::RunSpec& spec) { spec.task.text = "words"; }).find("has no text column \"words\""),
        std::string::npos);
  }
  for (const auto& left : fs::directory_iterator(folder_ / "cache"))
    EXPECT_FALSE(left.is_directory()) << "nothing half-written";
}

}  // namespace
}  // namespace syncopate::tasks
