#include "syncopate/cli/outcome.h"

#include "syncopate/base/error.h"
#include "syncopate/base/standard_error.h"

namespace syncopate::cli {

int outcome(const run::LaunchResult& result) {
  if (!result.sentence.empty() && result.exit_code != static_cast<int>(ExitCode::kInterrupted))
    tell("syncopate: {}", result.sentence);
  return result.exit_code;
}

}  // namespace syncopate::cli
