#include "syncopate/tasks/token_folder.h"

#include <fmt/format.h>

#include "syncopate/base/notes.h"

namespace syncopate::tasks {

bool chosen_by_itself(const spec::RunSpec& spec) { return spec.task.cache == "auto"; }

std::string token_folder(const spec::RunSpec& spec) {
  if (spec.task.data.empty() || spec.task.cache == "off") return "";
  return chosen_by_itself(spec) ? spec.task.auto_cache : spec.task.cache;
}

bool worth_keeping(const spec::RunSpec& spec, uintmax_t bytes) {
  constexpr uintmax_t kLeast = uintmax_t{32} << 20;
  return !chosen_by_itself(spec) || bytes >= kLeast;
}

Progress::Style progress_of_tokens(uintmax_t bytes) {
  constexpr uintmax_t kLong = uintmax_t{64} << 20;
  return bytes >= kLong ? Progress::style_for_stderr() : Progress::Style::kNone;
}

std::string not_kept(const spec::RunSpec& spec, const std::string& why) {
  return warning(fmt::format(
      "tokens cannot be kept in {} ({}), so every worker holds all of them; choose a folder with --cache",
      token_folder(spec), why));
}

}  // namespace syncopate::tasks
