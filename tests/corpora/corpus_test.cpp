#include "syncopate/corpora/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "syncopate/corpora/documents.h"
#include "syncopate/corpora/wordnet/wordnet.h"
#include "tests/support/fixtures.h"
#include "tests/support/image_files.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using syncopate::test::TempDir;
using syncopate::test::write_text;
using Texts = std::vector<std::string>;

std::string numbered(const std::string& prefix, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += prefix + std::to_string(i) + "\n";
  return text;
}

bool noted(const Corpus& corpus, const std::string& part) {
  return std::any_of(corpus.notes.begin(), corpus.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

TEST(Documents, SplitAtLinesOrBlankLines) {
  EXPECT_EQ(part_documents("a b\n c \nd", "auto").texts, (Texts{"a b", "c", "d"}));
  EXPECT_EQ(part_documents("\n\na b\r\n c \r\n \t\r\n\nd\n\n", "auto").texts, (Texts{"a b c", "d"}));
  EXPECT_EQ(part_documents("\na\nb\n\n\n", "auto").texts, (Texts{"a", "b"}))
      << "blank lines around are not between";
  const Documents lines = part_documents("a\n\nb\n", "line");
  EXPECT_EQ(lines.texts, (Texts{"a", "b"}));
  EXPECT_EQ(lines.empty, 1);
  EXPECT_EQ(part_documents("a\nb", "blank").texts, (Texts{"a b"}));
  EXPECT_TRUE(part_documents("", "auto").texts.empty());
}

TEST(Corpus, SingleFileIsSplitOnlyForTraining) {
  const TempDir folder;
  write_text(folder / "x.txt", "\xEF\xBB\xBF" + numbered("document ", 50));
  const Corpus train = load_corpus({.path = folder / "x.txt"}, Purpose::kTrain);
  EXPECT_EQ(train.train.size(), 45U);
  EXPECT_EQ(train.test.size(), 5U);
  EXPECT_TRUE(noted(train, "5 of 50 documents held out"));
  for (const std::string& text : train.test)
    EXPECT_EQ(std::count(train.train.begin(), train.train.end(), text), 0);
  EXPECT_EQ(load_corpus({.path = folder / "x.txt"}, Purpose::kTrain).test, train.test)
      << "always the same ones";
  const Corpus whole = load_corpus({.path = folder / "x.txt"}, Purpose::kEvaluate);
  EXPECT_EQ(whole.test.size(), 50U);
  EXPECT_EQ(whole.test[0], "document 0") << "without the byte order mark";
  EXPECT_TRUE(whole.train.empty());
}

TEST(Corpus, FileNamesDecideTheSplits) {
  const TempDir folder;
  write_text(folder / "wiki.train.txt", numbered("train ", 7));
  write_text(folder / "wiki.valid.txt", numbered("valid ", 3));
  write_text(folder / "wiki.test.txt", numbered("test ", 2));
  write_text(folder / "README", "not a text file by its name");
  const Corpus corpus = load_corpus({.path = folder.path()}, Purpose::kTrain);
  EXPECT_EQ(corpus.train.size(), 7U);
  EXPECT_EQ(corpus.test, (Texts{"valid 0", "valid 1", "valid 2"})) << "valid before test";
  EXPECT_TRUE(noted(corpus, "wiki.test.txt left alone"));
  std::filesystem::remove(folder / "wiki.valid.txt");
  EXPECT_EQ(load_corpus({.path = folder.path()}, Purpose::kEvaluate).test, (Texts{"test 0", "test 1"}));
  std::filesystem::rename(folder / "wiki.train.txt", folder / "the-new-testament.txt");
  const Corpus book = load_corpus({.path = folder.path()}, Purpose::kTrain);
  EXPECT_EQ(book.train.size(), 7U) << "a testament is no test";
  EXPECT_EQ(book.test.size(), 2U);
}

TEST(Corpus, WithoutATrainFileTrainsOnTheLarger) {
  const TempDir folder;
  write_text(folder / "valid.txt", numbered("valid ", 3));
  write_text(folder / "test.txt", numbered("test ", 9));
  const Corpus corpus = load_corpus({.path = folder.path()}, Purpose::kTrain);
  EXPECT_EQ(corpus.train.size(), 9U);
  EXPECT_EQ(corpus.test.size(), 3U);
  EXPECT_TRUE(noted(corpus, "test.txt, the larger, is trained on and valid.txt tested on"));
  write_text(folder / "valid.txt", numbered("valid ", 30));
  EXPECT_EQ(load_corpus({.path = folder.path()}, Purpose::kTrain).train.size(), 30U)
      << "the foil: sizes changed";
}

TEST(Corpus, FolderWithoutSplitsHoldsOutATenth) {
  const TempDir folder;
  write_text(folder / "b.txt", numbered("b ", 30));
  write_text(folder / "a.txt", "one\n\n" + numbered("a ", 9) + "\nlast\n");
  const Corpus corpus = load_corpus({.path = folder.path()}, Purpose::kTrain);
  EXPECT_EQ(corpus.test.size(), 3U);
  EXPECT_EQ(corpus.train.size(), 30U);
  const Corpus evaluated = load_corpus({.path = folder.path()}, Purpose::kEvaluate);
  EXPECT_EQ(evaluated.test, corpus.test) << "the same split as in training";
  EXPECT_TRUE(evaluated.train.empty());
  const Corpus lines = load_corpus({.path = folder.path(), .documents = "line"}, Purpose::kTrain);
  EXPECT_EQ(lines.train.size() + lines.test.size(), 41U);
  EXPECT_TRUE(noted(lines, "2 empty documents skipped"));
}

TEST(Corpus, ReadsAColumnOfACsv) {
  const TempDir folder;
  write_text(folder / "x.csv",
             "id,text,more\r\n1,\"a \"\"b\"\",\nc\",x\r\n2,,y\r\n3,plain,z\r\n4,\"\",\r\n5, end ,\"\"\r\n");
  const Corpus corpus = load_corpus({.path = folder / "x.csv"}, Purpose::kEvaluate);
  EXPECT_EQ(corpus.test, (Texts{"a \"b\",\nc", "plain", "end"}));
  EXPECT_TRUE(noted(corpus, "2 empty documents skipped"));
  EXPECT_EQ(load_corpus({.path = folder / "x.csv", .text = "id"}, Purpose::kEvaluate).test.size(), 5U);
  const auto said = [&](const std::string& column) {
    return test::sentence<DataError>(
        [&] { load_corpus({.path = folder / "x.csv", .text = column}, Purpose::kEvaluate); });
  };
  EXPECT_NE(said("txt").find("the column \"txt\" is missing (there are: id, text, more)"), std::string::npos);
  write_text(folder / "x.csv", "text\na\n\"b\n");
  EXPECT_NE(said("").find("x.csv:3: "), std::string::npos) << said("");
  write_text(folder / "x.csv", "text,b\n\"a\n\",2\n1,2,3\n");
  EXPECT_NE(said("").find("x.csv:4: 3 columns where the header has 2"), std::string::npos) << said("");
}

std::string book(const std::string& title, const std::string& text) {
  return "The Project Gutenberg EBook of " + title + "\n\n*** START OF THIS PROJECT GUTENBERG EBOOK " +
         title + " ***\n\n" + text + "\n\n*** END OF THIS PROJECT GUTENBERG EBOOK " + title +
         " ***\n\nThe Project Gutenberg licence\n\n";
}

TEST(Corpus, ReadsEveryBookOfAFileAndSaysWhatItLeftOut) {
  const TempDir folder;
  const std::string first = numbered("\nfirst ", 30), second = numbered("\nsecond ", 30);
  write_text(folder / "both.txt", book("A", first) + book("B", second));
  const Corpus both = load_corpus({.path = folder / "both.txt"}, Purpose::kEvaluate);
  ASSERT_EQ(both.test.size(), 60U);
  EXPECT_EQ(both.test[29], "first 29");
  EXPECT_EQ(both.test[30], "second 0");
  ASSERT_EQ(both.notes.size(), 1U);
  EXPECT_TRUE(both.notes[0].starts_with("warning: " + (folder / "both.txt").string() + ": "))
      << both.notes[0];
  EXPECT_TRUE(noted(both, "left out as headers and footers of 2 books by Project Gutenberg"));
  write_text(folder / "both.txt", book("A", "\na line\n") + numbered("Project Gutenberg's licence ", 3000));
  EXPECT_TRUE(noted(load_corpus({.path = folder / "both.txt"}, Purpose::kEvaluate), "(100 %) left out"));
  write_text(folder / "both.txt", book("A", numbered("a line of the first book ", 3000)) + book("B", second));
  const Corpus large = load_corpus({.path = folder / "both.txt"}, Purpose::kEvaluate);
  ASSERT_EQ(large.notes.size(), 1U) << "less than a tenth is no warning";
  EXPECT_TRUE(large.notes[0].starts_with("both.txt: ")) << large.notes[0];
  write_text(folder / "both.txt", first + "\n\n" + second);
  EXPECT_TRUE(load_corpus({.path = folder / "both.txt"}, Purpose::kEvaluate).notes.empty()) << "the foil";
}

TEST(Corpus, ReadsTablesAndCompressedFilesOfAFolder) {
  const TempDir folder;
  write_text(folder / "train.txt.gz", test::gzipped("one\ntwo\n"));
  write_text(folder / "valid.jsonl", "{\"text\": \"three\"}\n{\"text\": \"four\"}\n");
  const Corpus corpus = load_corpus({.path = folder.path()}, Purpose::kTrain);
  EXPECT_EQ(corpus.train, (Texts{"one", "two"}));
  EXPECT_EQ(corpus.test, (Texts{"three", "four"}));
  write_text(folder / "x.json", "[{\"text\": \"five\"}, {\"text\": \"six\"}]");
  EXPECT_EQ(load_corpus({.path = folder / "x.json"}, Purpose::kEvaluate).test, (Texts{"five", "six"}));
}

TEST(Corpus, HeedsTheEncoding) {
  const TempDir folder;
  write_text(folder / "x.txt", "caf\xE9\nna\xEFve\n");
  const auto load = [&](const std::string& encoding) {
    return load_corpus({.path = folder / "x.txt", .form = {.encoding = encoding}}, Purpose::kEvaluate);
  };
  EXPECT_EQ(load("latin-1").test, (Texts{"café", "naïve"}));
  const Corpus replaced = load("replace");
  EXPECT_EQ(replaced.test, (Texts{"caf\uFFFD", "na\uFFFDve"}));
  EXPECT_TRUE(noted(replaced, "2 bytes that are not UTF-8 were replaced"));
  EXPECT_NE(test::sentence<DataError>([&] { load("utf-8"); }).find("x.txt:1: byte 3 of the file (0xe9)"),
            std::string::npos);
}

TEST(Corpus, RejectsSourcesWithoutText) {
  const TempDir folder;
  const auto said = [&](const std::string& name, Purpose purpose = Purpose::kTrain) {
    return test::sentence<DataError>([&] { load_corpus({.path = folder / name}, purpose); });
  };
  write_text(folder / "x.txt", " \n\n");
  EXPECT_NE(said("x.txt").find("x.txt holds no text"), std::string::npos);
  write_text(folder / "x.txt", "header\n*** START OF GUTENBERG X\n\n*** END OF GUTENBERG X\nfooter");
  EXPECT_NE(said("x.txt").find("x.txt holds no text"), std::string::npos);
  write_text(folder / "x.txt", "one");
  EXPECT_NE(said("x.txt").find("a single document"), std::string::npos);
  EXPECT_EQ(said("x.txt", Purpose::kEvaluate), "");
  EXPECT_NE(said("y.txt").find("y.txt"), std::string::npos);
  std::filesystem::create_directory(folder / "empty");
  EXPECT_NE(said("empty").find("holds no text files"), std::string::npos);
  write_text(folder / "empty" / "train-00000.parquet", "PAR1");
  EXPECT_NE(said("empty").find("holds Parquet files, which are not read; convert it: python3 -c"),
            std::string::npos);
  EXPECT_THROW(load_corpus({.path = folder / "x.txt", .documents = "page"}, Purpose::kTrain), ConfigError);
}

TEST(CorpusShared, ReadsBooksAndWikiText) {
  SYNCOPATE_NEED_SHARED(books, "data/books");
  SYNCOPATE_NEED_SHARED(wiki, "data/wikitext2");
  const Corpus corpus = load_corpus({.path = books}, Purpose::kTrain);
  const size_t documents = corpus.train.size() + corpus.test.size();
  EXPECT_GT(documents, 80000U);
  EXPECT_EQ(corpus.test.size(), documents / 10);
  for (const auto* texts : {&corpus.train, &corpus.test}) {
    for (const std::string& text : *texts) EXPECT_EQ(text.find("PROJECT GUTENBERG EBOOK"), std::string::npos);
  }
  EXPECT_TRUE(noted(corpus, "Anna-Karenina_1399.txt and 18 more: 376 kB (1.1 %) left out as headers and "))
      << corpus.notes[0];
  const Corpus articles = load_corpus({.path = wiki}, Purpose::kTrain);
  EXPECT_GT(articles.train.size(), articles.test.size());
  EXPECT_EQ(articles.test[0], "= Homarus gammarus =") << "valid.txt";
}

TEST(CorpusWordNet, UsesDefinitionsWithoutADataPath) {
  if (!std::filesystem::exists(kWordNetFolder)) GTEST_SKIP() << "needs Debian's wordnet-base";
  const Corpus corpus = load_corpus({}, Purpose::kTrain);
  EXPECT_EQ(corpus.train.size() + corpus.test.size(), 117659U);
  EXPECT_EQ(corpus.test.size(), 4000U);
  EXPECT_TRUE(noted(corpus, "WordNet"));
}

}  // namespace
}  // namespace syncopate::corpora
