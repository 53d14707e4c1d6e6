#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::test {

/// Records as CIFAR-10's binary files hold them, random by `seed`.
std::string cifar_records(int count, uint64_t seed);

/// An IDX file of bytes 0 to 9, random by `seed`; without `body` the header alone.
std::string idx_file(const std::vector<int64_t>& sizes, uint64_t seed, bool body = true);

std::string gzipped(const std::string& bytes);

}  // namespace syncopate::test
