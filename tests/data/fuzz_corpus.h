#pragma once

#include <vector>

#include "tests/data/fuzz.h"

namespace syncopate::data::test {

/// Readers of text corpora, byte-level BPEs and images.
std::vector<FuzzTarget> corpus_targets();

}  // namespace syncopate::data::test
