#pragma once

#include <filesystem>
#include <string>

// Small data for every family of tasks, the same on every machine. Each writes into `folder`, which it makes,
// and returns its path for --data.
namespace syncopate::test {

/// train.txt and valid.txt, a document a line, two to nine words each.
std::string small_corpus(const std::filesystem::path& folder);

/// train.json and dev.json as SQuAD v1.1; the contexts need one to several windows of 32 pieces.
std::string small_squad(const std::filesystem::path& folder);

/// train.csv and dev.csv with the columns text and label, three labels.
std::string small_table(const std::filesystem::path& folder);

/// The four IDX files: 47 training and 23 test images of 12 x 12, ten classes that can be told apart.
std::string small_idx(const std::filesystem::path& folder);

}  // namespace syncopate::test
