#include "syncopate/run/claims.h"

#include <algorithm>

#include "syncopate/base/fields.h"
#include "syncopate/base/version.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::run {
namespace {

bool is_preset(const std::string& model) {
  const auto names = spec::model_names();
  return std::find(names.begin(), names.end(), model) != names.end();
}

}  // namespace

lifeline::Claims claims_of(const spec::RunSpec& spec, const World& world, const std::string& out,
                           bool resume) {
  lifeline::Claims claims{{"the program's version", program_version()},
                          {"the program's commit", program_commit()},
                          {"the launcher's job", world.job},
                          {"--out", out},
                          {"--resume", resume ? "given" : "not given"}};
  spec::RunSpec mine = spec;
  const Fields fields = mine.fields();
  for (const Fields::Field& field : fields.all()) {
    if (spec::may_differ_between_ranks(field.name)) continue;
    std::string value = Fields::text_of(field);
    // Files and folders may lie elsewhere on each host.
    if (field.name == "model.name" && !is_preset(value)) value = "a folder";
    if (field.name == "task.validation" && value.find('/') != std::string::npos) value = "a file";
    claims.push_back({field.label(), value.empty() ? "unset" : value});
  }
  return claims;
}

}  // namespace syncopate::run
