#include "syncopate/corpora/gutenberg.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

/// What is kept, its pieces with "|" between them.
std::string kept(const std::string& text) {
  std::string all;
  const BookText made = without_gutenberg(text);
  size_t size = 0;
  for (const std::string_view piece : made.kept) {
    all.append(all.empty() ? "" : "|").append(piece);
    size += piece.size();
  }
  EXPECT_EQ(made.dropped, static_cast<int64_t>(text.size() - size));
  return all;
}

constexpr const char* kStart = "*** START OF THIS PROJECT GUTENBERG EBOOK X ***\n";
constexpr const char* kEnd = "*** END OF THIS PROJECT GUTENBERG EBOOK X ***\n";

TEST(Gutenberg, DropsHeaderAndFooter) {
  EXPECT_EQ(kept(std::string("Licence\n") + kStart + "Text.\n***\nMore.\n" + kEnd +
                 "*** START: FULL LICENSE ***\nLaw\n"),
            "Text.\n***\nMore.\n");
  EXPECT_EQ(kept("h\n***START OF THE PROJECT GUTENBERG EBOOK X***\r\nText."), "Text.");
  EXPECT_EQ(kept("Text.\n***END OF THE PROJECT GUTENBERG EBOOK X***"), "Text.\n");
  EXPECT_EQ(kept(std::string(kStart) + "Text.\n\n\nEnd of Project Gutenberg's X,\nby Y\n\n" + kEnd),
            "Text.\n\n\n");
}

TEST(Gutenberg, KeepsWhatIsNoHeaderOrFooter) {
  for (const char* text : {"He said: *** START OF nothing", "*** END OF x\na\n*** START OF x\nb", "",
                           "* *\nProject Gutenberg is a library.\n", "***", "\n***\n"})
    EXPECT_EQ(kept(text), text);
  const std::string mine(5000, 'a'), line = mine + "\n";
  EXPECT_EQ(kept(line + kStart + "b\n"), line + "|b\n") << "too long for a header";
  EXPECT_EQ(kept(std::string("short\n") + kStart + "b\n"), "b\n") << "the foil";
  EXPECT_EQ(kept(std::string("a\n") + kEnd + "The licence of Project Gutenberg\nends.\n\n" + line),
            "a\n|\n" + line)
      << "too long for a footer";
}

TEST(Gutenberg, ReadsEveryBook) {
  const std::string head = "\xEF\xBB\xBFThe Project Gutenberg EBook of X\n\n";
  const std::string one = head + kStart + "one\n" + kEnd + "Gutenberg's law\n\n";
  const std::string two = head + kStart + "two\n" + kEnd + "Gutenberg's law\n\n";
  EXPECT_EQ(kept(one + two), "one\n|two\n");
  EXPECT_EQ(without_gutenberg(one + two).books, 2);
  EXPECT_EQ(without_gutenberg(one).books, 1);
  const std::string plain = std::string(9000, 'p') + "\n";
  EXPECT_EQ(kept(one + plain + two), "one\n|\n" + plain + "|two\n") << "another text between them";
  EXPECT_EQ(kept(head + kStart + "one\n" + two), "one\n|two\n") << "a book without its end";
  EXPECT_EQ(kept(one + "two\n" + kEnd), "one\n") << "a few words behind a footer belong to it";
}

TEST(GutenbergShared, ReadsNovelsOneAfterTheOther) {
  SYNCOPATE_NEED_SHARED(books, "data/books");
  std::string all;
  size_t alone = 0;
  int64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(books)) {
    if (entry.path().extension() != ".txt") continue;
    const std::string book = test::read_text(entry.path());
    alone += static_cast<size_t>(without_gutenberg(book).dropped);
    all += book;
    ++files;
  }
  const BookText made = without_gutenberg(all);
  EXPECT_EQ(made.books, files);
  EXPECT_EQ(made.dropped, static_cast<int64_t>(alone)) << "as from each by itself";
  EXPECT_LT(made.dropped, static_cast<int64_t>(all.size() / 50));
  EXPECT_GT(made.dropped, 19000 * files);
}

}  // namespace
}  // namespace syncopate::corpora
