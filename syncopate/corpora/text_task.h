#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::corpora {

enum class Split : uint8_t { kTrain, kValidation, kTest };
inline constexpr Split kSplits[] = {Split::kTrain, Split::kValidation, Split::kTest};
std::string_view name_of(Split split);  ///< "train"

/// A text, or two, and the number of its label.
struct TextExample {
  std::string a;
  std::string b;       ///< empty: a single text
  int64_t label = -1;  ///< -1: not known
};

/// A part of a test split that is also scored by itself: examples begin..end-1.
struct TestPart {
  std::string name;
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const TestPart&) const = default;
};

/// Classification of texts. Examples are in their file's order.
struct TextTask {
  std::string name;
  std::vector<std::string> labels;  ///< by number
  std::vector<TextExample> train;   ///< empty unless loaded for training
  std::vector<TextExample> test;
  std::vector<TestPart> parts{};              ///< of the test split, one after the other; empty: it has none
  std::vector<std::string> notes{};           ///< sentences for the user: what was skipped
  std::vector<std::string> training_notes{};  ///< about what is trained on: for who trains
};

/// What a task is loaded for.
enum class Purpose {
  kTrain,     ///< both splits, labels needed
  kEvaluate,  ///< the test split, or the whole of one file; labels needed
  kPredict,   ///< as kEvaluate; labels that are absent or unknown become -1
};

/// FNV-1a over the bytes, then mixed: the same on every machine, for splits that must never change.
uint64_t stable_hash(std::string_view bytes);

/// Which are held out, one flag for each: the `count` with the smallest keys; of equal keys the earlier is
/// smaller.
std::vector<char> held_out(const std::vector<uint64_t>& keys, size_t count);

/// How many of `all` are held out where nobody says: a tenth, one at least.
size_t a_tenth(size_t all);

/// Moves the `count` examples with the smallest keys to `task.test` and the others to `task.train`, both in
/// the order given; of equal keys the earlier is smaller. One key per example.
void hold_out(std::vector<TextExample> examples, const std::vector<uint64_t>& keys, int64_t count,
              TextTask& task);

}  // namespace syncopate::corpora
