#pragma once

#include <filesystem>

#include "syncopate/corpora/squad/squad.h"

namespace syncopate::corpora {

/// The task `definition_qa`, SQuAD's form without a download: paragraphs of 60 to 120 words in which
/// WordNet's nouns are defined ("A dog is a member of the genus Canis ..."), with questions for the noun by
/// its definition and for the definition by its noun. A noun is in one paragraph only, and a hash of its
/// synset says in which, so the splits share none, whatever the seed: about 20,000 training and 2,000 test
/// questions in WordNet 3.0. `path`: as read_nouns. Throws DataError.
SquadTask load_definition_qa(const std::filesystem::path& path, Purpose purpose);

}  // namespace syncopate::corpora
