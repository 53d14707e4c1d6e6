#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "syncopate/data/token_file.h"

namespace syncopate::data {

/// The cache cannot be used here (nobody may write there, the disk is full): what() says why, as the end of a
/// sentence.
class CacheUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What was made of some files, for the other workers of this host and for later runs: token files, with a
/// note beside them, in a folder that is named by a hash of all that decides them, the files' contents among
/// it. Whoever comes first makes them while the others wait, beside their place, and renames them when whole;
/// what was damaged is made again, what was left half-written for a day is removed. Nothing in the folder is
/// needed by later runs: it may be deleted while no run uses it.
class KeptFolder {
 public:
  /// Of these files, which a sentence calls `name`. `waiting`: the user is told that another process is at
  /// it.
  KeptFolder(std::filesystem::path folder, std::vector<std::filesystem::path> files, std::string name,
             bool waiting);

  uintmax_t bytes() const;  ///< of the files
  /// Throws CacheUnavailable where the disk has less than that.
  void require_room(double bytes) const;

  /// A text that `make` gives, here or before; `what` says all that decides it beside the files. One that
  /// cannot be kept is given all the same. Throws CacheUnavailable where `make` was not asked for it.
  std::string text(const nlohmann::json& what, const std::function<std::string()>& make);

  struct Recipe {
    nlohmann::json what;             ///< all that decides it beside the files
    std::vector<std::string> names;  ///< of its token files
    double room = 0;                 ///< bytes, about; 0: `make` asks for it
    /// Writes the token files into a folder and gives the note. Failures to write are CannotWrite.
    std::function<nlohmann::json(const std::filesystem::path& folder)> make;
  };
  struct Entry {
    std::vector<std::shared_ptr<const TokenFile>> files;  ///< as named
    nlohmann::json note;
    std::vector<std::string> notes;  ///< for the user: what became of the cache
  };
  /// Throws CacheUnavailable, and what `make` throws. Where one fails to write, those who waited for it do
  /// not try in their turn.
  Entry entry(const Recipe& recipe);

 private:
  class Turn;
  std::string key_of(const nlohmann::json& what);  ///< reads the files where they are new
  Entry open(const std::filesystem::path& entry, const Recipe& recipe) const;
  std::string make(const std::filesystem::path& entry, const Recipe& recipe);
  std::filesystem::path half_written(const std::string& whose) const;
  void sweep(std::filesystem::file_time_type now) const;
  void require_unchanged() const;  ///< the files, since their hashes were asked for
  /// What `work` gives of the files; DataError where they changed meanwhile, whatever it throws then.
  template <typename Work>
  auto of_unchanged(const Work& work) const;

  const std::filesystem::path folder_;
  const std::vector<std::filesystem::path> files_;
  const std::string name_;
  const bool waiting_;
  std::vector<std::string> stamps_;  ///< of the files when they were hashed
  std::string of_files_;             ///< by their paths: what the lock and the book of hashes are called
};

}  // namespace syncopate::data
