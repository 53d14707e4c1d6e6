#include "syncopate/report/reading/attachments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/report/plain_text.h"
#include "syncopate/report/reading/read_sweep.h"
#include "syncopate/report/traits.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kAdvice = "advice.json";
constexpr std::string_view kPlacement = ".placement.json";

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if ((name == kAdvice || name.ends_with(kPlacement)) && entry.is_regular_file(ignored))
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

double number_or_unknown(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : kUnknown;
}

std::string text_or_empty(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void expect(bool holds, const char* what) {
  if (!holds) throw DataError("{}", what);
}

Json read(const fs::path& path, std::string_view format) {
  Json json;
  try {
    json = Json::parse(utf8(read_file(path, "file")));
  } catch (const nlohmann::json::parse_error&) {
    throw DataError("it is not JSON");
  }
  expect(json.is_object(), "it is not JSON");
  if (text_or_empty(json, "format") != format) throw DataError("its format is not {}", format);
  return json;
}

Json advice_of(const fs::path& path) {
  Json json = read(path, "syncopate-advice-1");
  const auto rows = json.find("rows");
  expect(rows != json.end() && rows->is_array(), "it has no rows");
  for (Json& row : *rows) {
    const auto predicted = row.is_object() ? row.find("predicted") : row.end();
    expect(row.is_object() && predicted != row.end() && predicted->is_object() &&
               std::isfinite(number_or_unknown(*predicted, "ms")),
           "a row has no predicted ms");
    row["family"] = family_of(text_or_empty(row, "strategy"), text_or_empty(row, "codec"), "row");
    row["name"] = advice_row_name(row);
  }
  return json;
}

Json placement_of(const fs::path& path) {
  Json json = read(path, "syncopate-placement-1");
  const auto stages = json.find("stages");
  expect(stages != json.end() && stages->is_array() && !stages->empty(), "it has no stages");
  for (const Json& stage : *stages) {
    expect(stage.is_array() && !stage.empty(), "a stage has no device");
    for (const Json& device : stage)
      expect(device.is_number_integer() && device.get<int64_t>() >= 0,
             "a device of a stage is not a number from 0");
  }
  return json;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

std::string attachments_stamp(const fs::path& folder) {
  std::string all;
  for (const fs::path& path : files_in(folder)) all += path.filename().string() + "|" + stamp_of(path) + "\n";
  return all;
}

Attachments read_attachments(const fs::path& folder) {
  Attachments found;
  std::vector<std::string> damaged;
  for (const fs::path& path : files_in(folder)) {
    const std::string name = utf8(path.filename().string());
    try {
      const bool advice = name == kAdvice;
      Attachment file{.file = name, .json = (advice ? advice_of(path) : placement_of(path)).dump()};
      if (advice) {
        found.advice = std::move(file);
      } else {
        found.placements.push_back(std::move(file));
      }
    } catch (const Error& error) {
      damaged.push_back(fmt::format("{} ({})", name, utf8(error.what())));
    }
  }
  if (!damaged.empty())
    found.notes.push_back(
        {.code = "damaged", .text = "could not be read and are left out: " + some_of(damaged)});
  return found;
}

std::string advice_row_name(const Json& row) {
  std::string name = text_or_empty(row, "strategy");
  if (const std::string codec = text_or_empty(row, "codec"); !codec.empty() && codec != "none")
    name += ", " + codec;
  if (const double every = number_or_unknown(row, "every"); every > 1)
    name += fmt::format(", every {:g}", every);
  const double workers = number_or_unknown(row, "workers");
  if (workers > 1) name += fmt::format(", {:g} workers", workers);
  return name;
}

std::string advice_network(const Json& advice) {
  const double scale = number_or_unknown(advice, "scale");
  return network_text({.name = text_or_empty(advice, "network"), .scale = scale > 0 ? scale : 1});
}

std::string advice_sentence(const Results& results) {
  const Json advice = Json::parse(results.advice_check->json);
  const Json& rows = advice.at("rows");
  const auto best = static_cast<size_t>(std::max(0.0, number_or_unknown(advice, "best")));
  std::string sentence;
  if (std::isfinite(number_or_unknown(advice, "best")) && best < rows.size()) {
    const Json& row = rows.at(best);
    const std::string network = advice_network(advice);
    sentence =
        fmt::format("By prediction {} is the fastest{}: {:.4g} ms per iteration.", advice_row_name(row),
                    network.empty() ? "" : " on " + network, number_or_unknown(row.at("predicted"), "ms"));
  } else {
    sentence = fmt::format("{} strategies were predicted.", rows.size());
  }
  for (const PredictionSummary& each : results.prediction_errors) {
    if (each.series != "advice" || each.n == 0) continue;
    sentence += fmt::format(" Of {} that ran, predictions were off by {} (median) and {} (90th percentile).",
                            each.n, percent(each.median), percent(each.p90));
  }
  return sentence;
}

std::string placement_sentence(const Attachment& placement) {
  const Json json = Json::parse(placement.json);
  const Json& stages = json.at("stages");
  std::string sentence =
      fmt::format("{}: {} {} x {} {}", placement.file, stages.size(), stages.size() == 1 ? "stage" : "stages",
                  stages.at(0).size(), stages.at(0).size() == 1 ? "replica" : "replicas");
  if (const std::string network = advice_network(json); !network.empty()) sentence += " on " + network;
  const double cost = number_or_unknown(json, "cost_s"), random = number_or_unknown(json, "random_s");
  if (std::isfinite(cost)) sentence += fmt::format(", predicted {:.4g} s per iteration", cost);
  if (cost > 0 && std::isfinite(random))
    sentence += fmt::format(", {} as fast as random layouts", times_text(random / cost));
  return sentence + ".";
}

}  // namespace syncopate::report
