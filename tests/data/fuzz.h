#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace syncopate::data::test {

/// Something that reads bytes from outside.
struct FuzzTarget {
  std::string name;
  std::string seed_text;  ///< an input that it accepts
  std::function<void(const std::string& bytes, const std::filesystem::path& scratch_folder)> run;
};

/// Runs the target on `count` damaged copies of its seed text, the same ones for the same `seed`. Each is
/// read or refused by a DataError or ConfigError; anything else passes through. Gives the number refused.
int fuzz(const FuzzTarget& target, int count, uint64_t seed);

}  // namespace syncopate::data::test
