#include "syncopate/tasks/classified_texts.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <utility>

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
  /// The same examples, to the last word.
  static void expect_same(const data::TextExamples& found, const data::TextExamples& right) {
    ASSERT_EQ(found.size(), right.size());
    EXPECT_EQ(found.tokens(), right.tokens());
    EXPECT_EQ(found.fingerprint(), right.fingerprint());
    for (int64_t id = 0; id < found.size(); ++id) ASSERT_EQ(row(found, id), row(right, id)) << id;
  }
  static void expect_same(const ClassifiedExamples& found, const ClassifiedExamples& right) {
    EXPECT_EQ(found.labels, right.labels);
    EXPECT_EQ(found.parts, right.parts);
    expect_same(*found.train, *right.train);
    expect_same(*found.test, *right.test);
    ASSERT_EQ(found.validation == nullptr, right.validation == nullptr);
    if (found.validation) expect_same(*found.validation, *right.validation);
  }
  /// An example's label, how many words are of its second text, and its words.
  static std::vector<int32_t> row(const data::TextExamples& examples, int64_t id) {
    const data::TextExamples::Example example = examples.at(id);
    std::vector<int32_t> words(static_cast<size_t>(example.length));
    examples.read(example, words);
    words.insert(words.end(), {example.label, example.seconds});
    return words;
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
    for (const ClassifiedExamples* found : {&kept, &again}) expect_same(*found, memory);
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

TEST_F(KeptExamples, AreThoseOfTheColumnsAndFilesThatAreRead) {
  const std::string head = "one,two,kind,mood\n";
  const auto rows = [&](int from) {
    std::string table = head;
    for (int i = from; i < from + 9; ++i) {
      table += (i % 2 == 0 ? "the cat " : "a dog b ") + std::to_string(i) + "," +
               (i % 3 == 0 ? "dog" : "café the") + "," + (i % 4 == 0 ? "x" : "y") + "," +
               (i % 5 == 0 ? "glad" : "sad") + "\n";
    }
    return table;
  };
  for (const char* name : {"here", "there"}) {
    fs::create_directories(folder_ / name);
    test::write_text(folder_ / name / "train.csv", rows(0));
    test::write_text(folder_ / name / "dev.csv", rows(4));
  }
  test::write_text(folder_ / "own.csv", rows(7));
  const Change plain = [&](spec::RunSpec& spec) {
    spec.task.data = (folder_ / "here").string();
    spec.task.text = "one";
    spec.task.label = "kind";
  };
  const auto in_memory = [&](const Change& change) {
    return examples([&](spec::RunSpec& spec) {
      plain(spec);
      change(spec);
      spec.task.cache = "off";
    });
  };
  const auto kept = [&](const Change& change) {
    return examples([&](spec::RunSpec& spec) {
      plain(spec);
      change(spec);
    });
  };
  const std::pair<const char*, Change> changes[] = {
      {"none", [](spec::RunSpec&) {}},
      {"another text", [](spec::RunSpec& spec) { spec.task.text = "two"; }},
      {"a pair", [](spec::RunSpec& spec) { spec.task.text_pair = "two"; }},
      {"another class", [](spec::RunSpec& spec) { spec.task.label = "mood"; }},
      {"an encoding", [](spec::RunSpec& spec) { spec.task.encoding = "latin-1"; }},
      {"a separator", [](spec::RunSpec& spec) { spec.task.separator = ","; }},
      {"another folder of the same content",
       [&](spec::RunSpec& spec) { spec.task.data = (folder_ / "there").string(); }},
      {"a validation file",
       [&](spec::RunSpec& spec) { spec.task.validation = (folder_ / "own.csv").string(); }}};
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    const ClassifiedExamples first = kept(change), again = kept(change), memory = in_memory(change);
    EXPECT_TRUE(says(first, "tokens kept in "));
    EXPECT_TRUE(says(again, "tokens read from "));
    expect_same(first, memory);
    expect_same(again, memory);
  }
  EXPECT_NE(kept(changes[1].second).train->fingerprint(), kept(changes[0].second).train->fingerprint())
      << "the foil";
  const Change own = changes[std::size(changes) - 1].second;
  for (const auto& [file, from] : {std::pair{folder_ / "own.csv", 9}, {folder_ / "here/dev.csv", 12}}) {
    test::write_text(file, rows(from));
    const ClassifiedExamples changed = kept(own);
    EXPECT_TRUE(says(changed, "tokens kept in ")) << file;
    expect_same(changed, in_memory(own));
  }
}

// In files that are chosen by themselves, each seed would leave another entry.
TEST_F(KeptExamples, AreNotKeptByThemselvesWhereASeedDrawsThem) {
  std::string table = "text,label\n";
  while (table.size() < size_t{34} << 20)
    table += std::string(4000, 'a') + (table.size() % 2 ? ",x\n" : ",y\n");
  test::write_text(folder_ / "large.csv", table);
  const auto limited = [&](int64_t limit) {
    return [&, limit](spec::RunSpec& spec) {
      spec.task.data = (folder_ / "large.csv").string();
      spec.task.cache = "auto";
      spec.task.auto_cache = (folder_ / "by itself").string();
      spec.task.limit = limit;
    };
  };
  EXPECT_FALSE(says(examples(limited(50)), "tokens kept in "));
  EXPECT_TRUE(says(examples(limited(0)), "tokens kept in ")) << "the foil";
}

/// No file of this process can become larger.
class LargestFile {
 public:
  explicit LargestFile(rlim_t bytes) : signals_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~LargestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signals_);
  }

 private:
  void (*signals_)(int);
  rlimit before_{};
};

TEST_F(KeptExamples, AreInMemoryWhereTheDiskIsFullInTheEnd) {
  std::string table = "text,label\n";
  for (size_t row = 0; row < 2000; ++row)
    table += "the cat a dog b the cat" + std::string(row % 2 ? ",x\n" : ",y\n");
  test::write_text(folder_ / "many.csv", table);
  const Change many = [&](spec::RunSpec& spec) { spec.task.data = (folder_ / "many.csv").string(); };
  const ClassifiedExamples memory = examples([&](spec::RunSpec& spec) {
    many(spec);
    spec.task.cache = "off";
  });
  std::optional<ClassifiedExamples> found;
  {
    const LargestFile limit(8192);
    found = examples(many);
  }
  EXPECT_TRUE(says(*found, "warning: tokens cannot be kept in ")) << "its texts were tokenized by then";
  expect_same(*found, memory);
  EXPECT_EQ(entry(), fs::path()) << "nothing half-written";
  EXPECT_TRUE(says(examples(many), "tokens kept in ")) << "the foil";
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
  for (size_t row = 0; row < 30000; ++row) {
    for (size_t k = 0; k <= row % 19; ++k) table += words[(row * 31 + k * k + row / 9) % words.size()] + " ";
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
  ASSERT_GT(kept.train->tokens(), 1 << 18) << "more than is written at a time";
  expect_same(kept, memory);
  EXPECT_NE(row(*kept.train, 0), row(*kept.train, 1)) << "the foil";
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
  expect_same(kept, memory);
  EXPECT_EQ(kept.parts, (std::vector<corpora::TestPart>{{"matched", 0, 1}, {"mismatched", 1, 3}}));
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
  examples();
  const ClassifiedExamples sound = examples([](spec::RunSpec& spec) { spec.task.cache = "off"; });
  for (const char* name : {"train.tokens", "train-examples.tokens", "test-examples.tokens", "note.json"}) {
    const fs::path path = entry() / name;
    std::string bytes = test::read_text(path);
    bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
    test::write_text(path, bytes);
    const ClassifiedExamples again = examples();
    EXPECT_TRUE(says(again, "was damaged and has been made again")) << name;
    expect_same(again, sound);
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
  expect_same(found, memory);
  for (int64_t id = 0; id < found.train->size(); ++id) EXPECT_GT(found.train->at(id).seconds, 0);
}

TEST_F(KeptExamples, KeepAVocabularyThatIsLearned) {
  const spec::RunSpec spec = spec_of(), off = spec_of([](spec::RunSpec&s) { s.task.cache = "off"; });
  const std::string learned = ClassifiedTexts(spec, false).vocabulary(true);
  const auto kept = [&] {
    std::map<fs::path, fs::file_time_type> found;  // with their times
    for (const auto& file : fs::directory_iterator(spec.task.cache)) {
      if (file.path().extension() == ".vocabulary") found[file.path()] = file.last_write_time();
    }
    return found;
  };
  const auto first = kept();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(ClassifiedTexts(off, false).vocabulary(true), learned);
  EXPECT_EQ(ClassifiedTexts(off, false).vocabulary(false), "");
  EXPECT_EQ(ClassifiedTexts(spec, false).vocabulary(false), "") << "nobody asked for it";
  EXPECT_EQ(ClassifiedTexts(spec, false).vocabulary(true), learned);
  const spec::RunSpec shorter = spec_of([](spec::RunSpec& s) { s.task.test_limit = 1; });
  EXPECT_EQ(ClassifiedTexts(shorter, false).vocabulary(true), learned);
  EXPECT_EQ(kept(), first) << "there already: nobody learned again";
  const spec::RunSpec less = spec_of([](spec::RunSpec& s) { s.model.vocab_size = 60; });
  EXPECT_NE(ClassifiedTexts(less, false).vocabulary(true), learned) << "the foil";
  EXPECT_EQ(kept().size(), 2u);
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
