#include "syncopate/record/read_run.h"

#include <algorithm>
#include <string>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/record/lines.h"
#include "syncopate/record/run_folder.h"

namespace syncopate::record {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A parser's complaint without its number and position: "[json.exception.type_error.302] type must be ...".
std::string reason(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

[[noreturn]] void damaged(const fs::path& file, size_t line, const std::string& why) {
  throw DataError("{}:{}: {}; the file is damaged: restore it from a copy, or run again", file.string(), line,
                  why);
}

Json read_object(const fs::path& file, std::string_view what) {
  const std::string text = read_file(file, what);
  try {
    Json json = Json::parse(text);
    if (!json.is_object()) damaged(file, 1, "not a JSON object");
    return json;
  } catch (const nlohmann::json::parse_error& error) {
    const size_t read = std::min(error.byte, text.size());
    const auto before = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(read), '\n');
    damaged(file, static_cast<size_t>(before) + 1, "not JSON");
  }
}

/// The lines of a file that grows with the run; none where the run has not begun it.
std::vector<std::string> lines_of(const fs::path& file, bool done) {
  if (!fs::exists(file)) return {};
  std::vector<std::string> lines = read_lines(file, "record");
  if (done) {
    size_t whole = 0;
    for (const std::string& line : lines) whole += line.size() + 1;
    if (whole != fs::file_size(file)) damaged(file, lines.size() + 1, "the last line is cut off");
  }
  return lines;
}

/// A record per line, made by `parse`.
template <typename Parse>
auto read_records(const fs::path& file, bool done, const Parse& parse) {
  std::vector<decltype(parse(Json()))> records;
  for (const std::string& line : lines_of(file, done)) {
    try {
      records.push_back(parse(Json::parse(line)));
    } catch (const nlohmann::json::parse_error&) {
      damaged(file, records.size() + 1, "not JSON");
    } catch (const nlohmann::json::exception& error) {
      damaged(file, records.size() + 1, reason(error));
    }
  }
  return records;
}

std::vector<double> read_losses(const fs::path& file, bool done) {
  std::vector<double> losses;
  for (const std::string& line : lines_of(file, done)) {
    const auto loss = parse_number(line);
    if (!loss) damaged(file, losses.size() + 1, fmt::format("\"{}\" is not a number", line));
    losses.push_back(*loss);
  }
  return losses;
}

/// How many ranks have a file of losses, counted to the last.
int ranks_in(const RunFolder& folder) {
  int ranks = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("loss_") || !name.ends_with(".txt") || name.size() > 14) continue;
    const auto rank = parse_integer(std::string_view(name).substr(5, name.size() - 9));
    if (rank && *rank >= 0 && folder.losses(static_cast<int>(*rank)) == entry.path())
      ranks = std::max(ranks, static_cast<int>(*rank) + 1);
  }
  return ranks;
}

}  // namespace

Run read_run(const fs::path& path) {
  const RunFolder folder{path};
  if (!fs::exists(folder.spec())) {
    throw DataError("{} is not a run's folder: it has no spec.json; give the folder that a run wrote",
                    path.string());
  }
  Run run;
  // A run that ends while it is read was not done before: what is read then may be unfinished.
  run.done = fs::exists(folder.done());
  run.spec = read_object(folder.spec(), "settings of the run");
  if (fs::exists(folder.environment())) run.environment = read_object(folder.environment(), "environment");
  run.steps = read_records(folder.steps(), run.done, step_from_json);
  run.evals = read_records(folder.evals(), run.done, eval_from_json);
  const int ranks = ranks_in(folder);
  for (int rank = 0; rank < ranks; ++rank) run.losses.push_back(read_losses(folder.losses(rank), run.done));
  if (run.done || fs::exists(folder.result())) {
    try {
      run.result = run_from_json(read_object(folder.result(), "result"));
    } catch (const nlohmann::json::exception& error) {
      damaged(folder.result(), 1, reason(error));
    }
  }
  return run;
}

}  // namespace syncopate::record
