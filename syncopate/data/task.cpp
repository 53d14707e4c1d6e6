#include "syncopate/data/task.h"

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/data/glue.h"
#include "syncopate/data/wordnet.h"

namespace syncopate::data {

std::vector<std::string> task_names() {
  std::vector<std::string> names{"supersense"};
  for (const GlueFormat& format : glue_formats()) names.push_back(format.name);
  return names;
}

TextTask load_task(const std::string& name, const std::filesystem::path& path, Purpose purpose) {
  if (name == "supersense") return load_supersense(path, purpose);
  for (const GlueFormat& format : glue_formats()) {
    if (format.name != name) continue;
    if (path.empty()) {
      throw ConfigError(
          "the task {} needs its data: give a folder with train.tsv and dev.tsv, or a file, with --data",
          name);
    }
    return load_glue(format, path, purpose);
  }
  throw ConfigError("unknown task \"{}\"{}", name, suggestion(name, task_names()));
}

}  // namespace syncopate::data
