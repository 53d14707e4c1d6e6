#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/report/analysis/comparison.h"

namespace syncopate::report {

/// A run, and the one that it is compared with.
struct RunPair {
  const RunData* run = nullptr;
  const RunData* base = nullptr;  ///< the same seed's where there is one
  bool same_seed = false;

  const record::RunRecord& ours() const { return *run->files->record; }
  const record::RunRecord& theirs() const { return *base->files->record; }
};

/// An arm while it is checked against the one that its quality is compared with. Writes into the comparison,
/// which must outlive it.
class ArmChecks {
 public:
  /// Forgets what was found about the arm before.
  ArmChecks(Comparison& of, size_t arm);

  const Comparison& comparison() const { return of_; }
  size_t index() const { return index_; }
  const ArmResult& arm() const { return arm_; }
  const std::string& base_name() const { return base_name_; }
  bool alone() const { return alone_; }  ///< it is compared with itself
  /// Of the arm's finished runs.
  const std::vector<RunPair>& pairs() const { return pairs_; }
  /// The first pair for which it does not hold; null: it holds for all.
  template <typename Holds>
  const RunPair* breach(const Holds& holds) const {
    const auto found = std::find_if_not(pairs_.begin(), pairs_.end(), holds);
    return found == pairs_.end() ? nullptr : &*found;
  }

  template <typename Holds>
  bool for_all(const Holds& holds) const {
    return breach(holds) == nullptr;
  }

  /// One check. What the experiment allows to differ is fair, whatever was found.
  void add(const char* code, bool ok, std::string text, bool by_nature = false, bool known = true);
  void flag(const char* code, std::string text) { arm_.flags.push_back({code, std::move(text)}); }
  /// Leaves the arm out where a check failed.
  void conclude();

  std::string as_base() const { return alone_ ? "" : ", as " + base_name_; }

 private:
  Comparison& of_;
  size_t index_;
  ArmResult& arm_;
  std::string base_name_;
  bool alone_ = false;
  std::vector<RunPair> pairs_;
};

// How checks say what is missing.
inline constexpr const char* kNotKnown = "not known: the records do not say";
inline std::string or_nothing(const std::string& name) { return name.empty() ? "nothing" : name; }

}  // namespace syncopate::report
