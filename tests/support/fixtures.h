#pragma once

#include <string>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::test {

/// A vocabulary small enough to read, with the special words first and `more` after them.
std::vector<std::string> vocabulary_of(const std::vector<std::string>& more);

/// `text` with one to four random damages: bytes flipped, inserted, removed, doubled, moved, or the end cut
/// off.
std::string mutate(std::string text, Rng& rng);

/// Runs `body`; a DataError or ConfigError is fine and counted, anything else passes through.
template <typename Body>
int refused(const Body& body) {
  try {
    body();
  } catch (const DataError&) {
    return 1;
  } catch (const ConfigError&) {
    return 1;
  }
  return 0;
}

/// The sentence of the error that `body` throws; empty when it throws none.
template <typename Kind, typename Body>
std::string sentence(const Body& body) {
  try {
    body();
  } catch (const Kind& error) {
    return error.what();
  }
  return {};
}

}  // namespace syncopate::test
