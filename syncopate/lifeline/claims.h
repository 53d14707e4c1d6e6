#pragma once

#include <string>
#include <vector>

namespace syncopate::lifeline {

/// One thing that all ranks of a run must have alike: "--lr", "0.001".
struct Claim {
  std::string name;
  std::string value;  ///< empty: this rank was not told, and takes what the others have
};
using Claims = std::vector<Claim>;

/// What rank `rank` has otherwise than the run, in words: "--lr is 0.1 at rank 1 and 0.2 in the run"; empty:
/// nothing.
std::string difference(const Claims& of_rank, const Claims& of_run, int rank);

}  // namespace syncopate::lifeline
