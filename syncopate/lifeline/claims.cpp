#include "syncopate/lifeline/claims.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::lifeline {
namespace {

const std::string* find(const Claims& claims, const std::string& name) {
  const auto found =
      std::find_if(claims.begin(), claims.end(), [&](const Claim& c) { return c.name == name; });
  return found == claims.end() || found->value.empty() ? nullptr : &found->value;
}

}  // namespace

std::string difference(const Claims& of_rank, const Claims& of_run, int rank) {
  constexpr size_t kMost = 3;  // in one sentence
  std::string text;
  size_t count = 0;
  for (const Claim& claim : of_run) {
    const std::string* theirs = find(of_rank, claim.name);
    if (theirs == nullptr || claim.value.empty() || *theirs == claim.value) continue;
    if (++count > kMost) continue;
    text += fmt::format("{}{} is {} at rank {} and {} in the run", text.empty() ? "" : ", ", claim.name,
                        *theirs, rank, claim.value);
  }
  if (count > kMost) text += fmt::format(", and {} more", count - kMost);
  return text;
}

}  // namespace syncopate::lifeline
