#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "syncopate/lab/inputs.h"
#include "syncopate/record/record.h"

namespace syncopate::lab {

enum class Finding {
  kNothing,     ///< nothing that could be used
  kUnfinished,  ///< the same run, with a checkpoint to go on from
  kDone,        ///< the same run, finished
  kOutdated,    ///< a run of the same name with other settings, data or start
};

struct Found {
  Finding what = Finding::kNothing;
  std::string why{};                          ///< it is outdated, for people
  std::optional<record::RunRecord> record{};  ///< of one that is done
  double seconds = 0;                         ///< of training and evaluating: the least that it took
  std::string init_from{};                    ///< of an unfinished one: as it was spelled when it began
  bool other_version = false;                 ///< made by another version or commit of the program
};

/// What lies in a run's folder. It is the run only if its settings, its data and its start are those of
/// `spec` and `inputs`; a start in `out` is known by its name, however `out` is spelled. Where nobody noted
/// what it read, files that are younger than it make it outdated.
Found look_into(const std::filesystem::path& out, const std::string& folder, spec::RunSpec spec,
                const Fingerprints& inputs, const InputBook& book);

/// Moves a run's folder into out/outdated, under a name that is free there, and says where it is.
std::filesystem::path set_aside(const std::filesystem::path& out, const std::string& folder);

}  // namespace syncopate::lab
