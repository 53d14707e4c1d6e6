#pragma once

#include <filesystem>

#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// The task `hypernym`, from WordNet's nouns: does "a dog is a kind of canine" follow from "dog: a member of
/// the genus Canis ..."? Every synset that is used gives one pair that follows (the second noun is one to
/// three steps above the first) and one hard pair that does not: the direction reversed, a sibling of the
/// right noun, or a noun below such a sibling; never one that holds for another sense of the words. A hash of
/// the synset says which synsets are used and on which side both its pairs fall, whatever the seed: 20,000
/// train, 2,000 test in WordNet 3.0 (a tenth, of fewer). `path`: as read_nouns; one file given to evaluate on
/// is not used whole, the split stays. Throws DataError.
TextTask load_hypernym(const std::filesystem::path& path, Purpose purpose);

}  // namespace syncopate::corpora
