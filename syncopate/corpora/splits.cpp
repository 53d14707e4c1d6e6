#include "syncopate/corpora/splits.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/base/letters.h"
#include "syncopate/corpora/text_file.h"

namespace syncopate::corpora {
namespace {

constexpr const char* kTestWords[] = {"dev", "validation", "valid", "test"};

/// The name without .gz.
std::filesystem::path uncompressed(const std::filesystem::path& path) {
  return lower_letters(path.extension().string()) == ".gz" ? path.stem() : path.filename();
}

std::string lower_stem(const std::filesystem::path& path) {
  return lower_letters(uncompressed(path).stem().string());
}

std::string some_names_of(const std::vector<std::filesystem::path>& files) {
  constexpr size_t kShown = 12;
  std::vector<std::string> names;
  for (const auto& file : files) {
    if (names.size() == kShown) {
      names.emplace_back("...");
      break;
    }
    names.push_back(file.filename().string());
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

[[noreturn]] void missing(const std::filesystem::path& folder, std::string_view what,
                          const std::vector<std::string>& endings,
                          const std::vector<std::filesystem::path>& files) {
  refuse_parquet(folder);
  throw DataError(
      "{} has no {} with the extension {} (files there: {}); rename one, or give a single file as the data "
      "path",
      folder.string(), what, fmt::join(endings, " or "), some_names_of(files));
}

}  // namespace

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                            const std::function<bool(const std::filesystem::path&)>& keep) {
  std::vector<std::filesystem::path> files;
  std::error_code failed;
  std::filesystem::directory_iterator entries(folder, failed), end;
  for (; !failed && entries != end; entries.increment(failed)) {
    std::error_code unreadable;  // such an entry is no candidate
    if (keep(entries->path()) && entries->is_regular_file(unreadable)) files.push_back(entries->path());
  }
  if (failed) {
    throw DataError("the folder {} cannot be listed ({}); check its permissions", folder.string(),
                    failed.message());
  }
  std::sort(files.begin(), files.end());  // the system lists them in any order
  return files;
}

std::string lower_ending(const std::filesystem::path& path) {
  return lower_letters(uncompressed(path).extension().string());
}

void refuse_parquet(const std::filesystem::path& folder) {
  const auto files = files_with_ending(folder, {".parquet"});
  if (files.empty()) return;
  throw DataError("{} holds Parquet files, which are not read; {}", folder.string(),
                  parquet_advice(files.front()));
}

std::vector<std::filesystem::path> files_with_ending(const std::filesystem::path& folder,
                                                     const std::vector<std::string>& endings) {
  return files_in(folder, [&](const std::filesystem::path& path) {
    return std::find(endings.begin(), endings.end(), lower_ending(path)) != endings.end();
  });
}

std::optional<std::filesystem::path> find_named(const std::vector<std::filesystem::path>& files,
                                                std::string_view word) {
  std::vector<std::filesystem::path> same, containing;
  for (const auto& file : files) {
    const std::string stem = lower_stem(file);
    if (stem == word) same.push_back(file);
    if (stem.find(word) != std::string::npos) containing.push_back(file);
  }
  const auto& candidates = same.empty() ? containing : same;
  if (candidates.empty()) return std::nullopt;
  if (candidates.size() > 1) {
    throw DataError(
        "{} has several files that could be \"{}\": {}; keep one, or give a single file as the data path",
        candidates.front().parent_path().string(), word, some_names_of(candidates));
  }
  return candidates.front();
}

void require_data(const std::filesystem::path& data, std::string_view form) {
  std::error_code unreadable;  // says no more than that the file cannot be used
  if (std::filesystem::exists(data, unreadable)) return;
  throw DataError("{} does not exist; give {} as the data path", data.string(), form);
}

std::filesystem::path find_training_file(const std::filesystem::path& folder,
                                         const std::vector<std::string>& endings) {
  const auto files = files_with_ending(folder, endings);
  const auto train = find_named(files, "train");
  if (!train) missing(folder, "training file named train", endings, files);
  return *train;
}

SplitFiles find_splits(const std::filesystem::path& data, const std::vector<std::string>& endings,
                       Purpose purpose) {
  std::error_code unreadable;  // read_file says why
  if (!std::filesystem::is_directory(data, unreadable)) return {.train = {}, .test = data, .one_file = true};
  SplitFiles found;
  if (purpose == Purpose::kTrain) found.train = find_training_file(data, endings);
  const auto files = files_with_ending(data, endings);
  std::vector<std::filesystem::path> others;  // "train_without_test" is no test file
  for (const auto& file : files) {
    if (lower_stem(file).find("train") == std::string::npos) others.push_back(file);
  }
  for (const char* word : kTestWords) {
    if (const auto test = find_named(others, word)) {
      found.test = *test;
      return found;
    }
  }
  missing(data, "test file named dev, validation, valid or test", endings, files);
}

}  // namespace syncopate::corpora
