#include "syncopate/corpora/validation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "syncopate/base/error.h"

namespace syncopate::corpora {
namespace {

std::vector<std::string> held(std::vector<std::string> texts, double share) {
  std::vector<uint64_t> keys;
  for (const std::string& text : texts) keys.push_back(validation_key(text));
  return take_out(texts, held_out_for_validation(keys, share));
}

TEST(Validation, DependsOnContentAlone) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) texts.push_back("text " + std::to_string(i % 500));  // each twice
  const std::vector<std::string> first = held(texts, 0.1);
  EXPECT_NEAR(static_cast<double>(first.size()), 100, 2);
  std::multiset<std::string> expected(first.begin(), first.end());
  for (const std::string& text : first) EXPECT_EQ(expected.count(text), 2u) << "equal texts fall on one side";
  std::reverse(texts.begin(), texts.end());
  const std::vector<std::string> reversed = held(texts, 0.1);
  EXPECT_EQ(std::multiset<std::string>(reversed.begin(), reversed.end()), expected);
  // The foil: other content, other examples; and a smaller share is a part of a larger.
  texts[0] = "another";
  const std::vector<std::string> less = held(texts, 0.05);
  for (const std::string& text : less) EXPECT_TRUE(expected.contains(text) || text == "another");
  EXPECT_LT(less.size(), first.size());
}

TEST(Validation, BothTextsOfAPairCount) {
  EXPECT_EQ(validation_key("a", "b"), validation_key("a", "b"));
  EXPECT_NE(validation_key("a", "b"), validation_key("b", "a"));
  EXPECT_NE(validation_key("a", "b"), validation_key("ab"));
}

TEST(Validation, RefusesDataThatLeaveASideEmpty) {
  EXPECT_THROW(held({"one"}, 0.5), DataError);
  EXPECT_THROW(held(std::vector<std::string>(50, "the same"), 0.1), DataError);
  EXPECT_EQ(held({"one", "two"}, 0.01).size(), 1u);
}

TEST(Validation, FewDocumentsAreHeldOutInBlocks) {
  std::string book;
  for (int i = 0; i < 20000; ++i) book += "word" + std::to_string(i) + (i % 10 == 9 ? "\n" : " ");
  std::vector<std::string> documents{book};
  const HeldOutDocuments blocks = hold_out_documents(documents, 0.1);
  const std::vector<std::string>& taken = blocks.documents;
  EXPECT_EQ(blocks.unit, "blocks of text");
  size_t out = 0, left = 0;
  for (const std::string& text : taken) out += text.size();
  for (const std::string& text : documents) left += text.size();
  EXPECT_EQ(out + left, book.size()) << "nothing is lost";
  EXPECT_NEAR(static_cast<double>(out), 0.1 * static_cast<double>(book.size()), 5000);
  for (const std::string& text : taken) EXPECT_EQ(text.back(), '\n') << "cut at line ends";
  // Half of the blocks: neighbours are joined, and still counted one by one.
  EXPECT_NEAR(static_cast<double>(blocks.total), static_cast<double>(book.size()) / 4096, 2);
  EXPECT_EQ(blocks.taken, static_cast<size_t>(std::llround(0.1 * static_cast<double>(blocks.total))));
  documents = {book};
  const HeldOutDocuments half = hold_out_documents(documents, 0.5);
  EXPECT_EQ(half.total, blocks.total);
  EXPECT_EQ(half.taken, static_cast<size_t>(std::llround(0.5 * static_cast<double>(half.total))));
  EXPECT_LT(half.documents.size(), half.taken);
  std::vector<std::string> lines;
  for (int i = 0; i < 200; ++i) lines.push_back("line " + std::to_string(i));
  const HeldOutDocuments some = hold_out_documents(lines, 0.1);
  EXPECT_EQ(some.documents.size(), 20u);
  EXPECT_EQ(some.taken, 20u);
  EXPECT_EQ(some.total, 200u);
  EXPECT_EQ(some.unit, "documents");
  EXPECT_EQ(lines.size(), 180u);
}

}  // namespace
}  // namespace syncopate::corpora
