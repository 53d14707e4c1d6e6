#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace syncopate::test {

/// Something that reads bytes from outside, and a well-formed input to damage.
struct FuzzTarget {
  std::string name;
  std::string seed_text;
  std::function<void(const std::string& bytes, const std::filesystem::path& scratch_folder)> run;
};

/// mutates and runs `count` inputs; returns how many were refused by DataError/ConfigError; anything else
/// propagates
int fuzz(const FuzzTarget& target, int count, uint64_t seed);

/// A fresh file each time: some file systems flush to disk when a file is overwritten, which takes seconds in
/// all.
void write_fresh(const std::filesystem::path& path, const std::string& bytes);

std::vector<FuzzTarget> corpus_targets();  ///< texts, byte-level BPE, images
std::vector<FuzzTarget> table_targets();   ///< tables, WordNet, question answering

/// Every target there is, for robustness tests and bench_fuzz.
std::vector<FuzzTarget> all_targets();

}  // namespace syncopate::test
