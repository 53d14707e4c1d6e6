#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// Where Debian's package wordnet-base keeps WordNet 3.0.
inline constexpr const char* kWordNetFolder = "/usr/share/wordnet";

/// WordNet's 45 lexicographer files ("noun.animal"), by their number in its data files.
const std::vector<std::string>& lexicographer_files();

/// Throws DataError, with what to do, when WordNet's `file` is not in the folder `path`; empty: Debian's.
void require_wordnet_file(const std::filesystem::path& path, const char* file);

/// The task `supersense`: the definition of a synset (its text after `|`) to its lexicographer file.
/// `path`: a folder with data.noun, data.verb, data.adj and data.adv (117,659 examples in WordNet 3.0), or
/// one such file; empty: Debian's. From a folder the test split is fixed: the 4,000 examples (a tenth, if
/// that is fewer) with the smallest stable_hash of "<part of speech><offset>|<definition>", whatever the
/// seed. One file is used whole, or parted the same way when training. Throws DataError with file and line.
TextTask load_supersense(const std::filesystem::path& path, Purpose purpose);

}  // namespace syncopate::corpora
