#include "syncopate/base/fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/rng.h"

namespace syncopate {
namespace {

struct Inner {
  double lr = 0.5;
  bool on = false;
  void describe(Fields& fields) {
    fields.add("lr", lr, "the rate", "lr");
    fields.add("on", on, "whether");
  }
};

struct Outer {
  int64_t count = 3;
  std::string name = "x";
  Inner inner;
  void describe(Fields& fields) {
    fields.add("count", count, "how many", "how-many");
    fields.add("name", name, "what");
    fields.group("inner", inner);
  }
};

std::string complaint(const Fields& fields, const std::string& assignment) {
  try {
    fields.set_assignment(assignment);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Fields, SetsByNameAndByFlag) {
  Outer outer;
  Fields fields;
  outer.describe(fields);
  fields.set_assignment("inner.lr = 2e-5");
  fields.set("how_many", "7");
  fields.set_assignment("inner.on=true");
  EXPECT_EQ(outer.inner.lr, 2e-5);
  EXPECT_EQ(outer.count, 7);
  EXPECT_TRUE(outer.inner.on);
  Outer copy;
  Fields copied;
  copy.describe(copied);
  EXPECT_NE(fields.hash(), copied.hash());
  copied.from_json(fields.to_json());
  EXPECT_EQ(copy.inner.lr, 2e-5);
  EXPECT_EQ(fields.hash(), copied.hash());
}

TEST(Fields, ReportsUnknownNamesAndBadValues) {
  Outer outer;
  Fields fields;
  outer.describe(fields);
  EXPECT_EQ(complaint(fields, "inner.lt=1"), "unknown setting \"inner.lt\"; did you mean \"inner.lr\"?");
  EXPECT_EQ(complaint(fields, "count=many"), "--how-many must be a whole number, got \"many\"");
  EXPECT_EQ(complaint(fields, "inner.on=yes"), "inner.on must be true or false, got \"yes\"");
  EXPECT_EQ(complaint(fields, "count"), "a setting is given as name=value, got \"count\"");
}

TEST(Checksum, DependsOnEveryBitAndOnTheOrder) {
  std::string bytes(1001, 'a');
  const uint64_t before = checksum(bytes);
  EXPECT_EQ(before, checksum(bytes));
  for (const size_t at : {size_t{0}, size_t{31}, size_t{500}, size_t{999}, size_t{1000}}) {
    bytes[at] ^= 1;
    EXPECT_NE(before, checksum(bytes)) << at;
    bytes[at] ^= 1;
  }
  EXPECT_NE(checksum("ab"), checksum("ba"));
  EXPECT_NE(checksum("a", 1), checksum("a", 2));
}

TEST(Checksum, PiecesGiveTheSameAsTheWhole) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 7);
  for (const size_t piece : {size_t{1}, size_t{31}, size_t{32}, size_t{33}, size_t{700}}) {
    Checksum sum(9);
    for (size_t at = 0; at < bytes.size(); at += piece) {
      EXPECT_EQ(sum.value(), checksum(bytes.substr(0, at), 9)) << "a part, too";
      sum.add(std::string_view(bytes).substr(at, piece));
    }
    EXPECT_EQ(sum.value(), checksum(bytes, 9)) << piece;
    EXPECT_NE(sum.value(), checksum(bytes, 8)) << "the foil: another seed";
  }
}

TEST(Rng, PermutationsAreCompleteAndDependOnTheSeed) {
  auto order = permutation(1000, 5);
  EXPECT_EQ(order, permutation(1000, 5));
  EXPECT_NE(order, permutation(1000, 6));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace syncopate
