#include "tests/support/runs.h"

#include <unistd.h>

#include <sstream>

namespace syncopate::test {

std::string small_sst2(const TempDir& folder) {
  static const char* const good[] = {"bright", "warm", "clever", "tender", "lovely", "fresh"};
  static const char* const bad[] = {"dull", "cold", "stupid", "cruel", "ugly", "stale"};
  static const char* const things[] = {"film", "story", "cast", "song", "ending", "joke", "scene"};
  std::string train = "sentence\tlabel\n", dev = train;
  for (int i = 0; i < 84; ++i) {
    const bool positive = i % 2 == 0;
    std::string line = std::string("a ") + (positive ? good : bad)[i / 2 % 6] + " " + things[i % 7];
    if (i % 3 == 0)
      line += std::string(" and a ") + (positive ? good : bad)[(i + 1) % 6] + " " + things[(i + 2) % 7];
    line += std::string("\t") + (positive ? "1" : "0") + "\n";
    (i < 64 ? train : dev) += line;
  }
  std::filesystem::create_directories(folder / "data");
  write_text(folder / "data/train.tsv", train);
  write_text(folder / "data/dev.tsv", dev);
  return folder / "data";
}

std::vector<std::string> train_command(const std::string& data, const std::filesystem::path& out,
                                       const std::vector<std::string>& more) {
  std::vector<std::string> words{
      program().string(), "train", "--task",       "sst2", "--data",    data,        "--model", "bert-tiny",
      "--global-batch",   "10",    "--max-length", "16",   "--dropout", "0",         "--lr",    "1e-3",
      "--seed",           "5",     "--threads",    "1",    "--out",     out.string()};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<double> losses_of(const std::filesystem::path& run) {
  std::vector<double> losses;
  for (const auto& line : read_json_lines(run / "steps.jsonl")) losses.push_back(line.at("loss"));
  return losses;
}

bool namespaces_allowed() {
  return run_command({"unshare", "--user", "--map-root-user", "--net", "--mount", "true"}).exit_code == 0;
}

std::vector<int> processes_with(const std::string& text) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == ::getpid()) continue;
    if (read_text(entry.path() / "cmdline").find(text) == std::string::npos) continue;
    // A process that ended but was not yet collected has no command line left; what we see here lives.
    found.push_back(std::stoi(name));
  }
  return found;
}

}  // namespace syncopate::test
