#include "syncopate/report/reading/read_sweep.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/record/lines.h"
#include "syncopate/record/run_folder.h"
#include "syncopate/report/plain_text.h"
#include "syncopate/report/reading/plan.h"
#include "syncopate/report/traits.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kCurvePoints = 200, kAllPoints = 400'000, kFewestPoints = 10;

Json read_json(const fs::path& path, std::string_view what) {
  try {
    Json json = Json::parse(utf8(read_file(path, what)));
    if (json.is_object()) return json;
  } catch (const nlohmann::json::parse_error&) {
  }
  throw DataError("{} is not JSON", utf8(path.filename().string()));
}

/// Whether 0 leaves the choice to the program.
bool chosen_by_the_program(std::string_view setting) {
  return setting == "train.epochs" || setting == "train.steps" || setting == "compute.threads";
}

Settings settings_of(const Json& spec) {
  Settings settings;
  settings.reserve(spec.size());
  for (const auto& field : spec.items()) {
    const Json& value = field.value();
    if (value.is_structured() || value.is_null()) continue;
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    // A number of 0 would be read as none at all.
    if (text == "0" && chosen_by_the_program(field.key())) text = "auto";
    settings.emplace_back(field.key(), std::move(text));
  }
  return settings;
}

/// A line of evals.jsonl without its confusion matrix, which is long and stands last.
record::EvalRecord eval_of(const std::string& line) {
  constexpr std::string_view kConfusion = ",\"confusion\":[[";
  const size_t at = line.find(kConfusion);
  const bool last = at != std::string::npos && line.ends_with("]]}");
  record::EvalRecord record =
      record::eval_from_json(Json::parse(utf8(last ? line.substr(0, at) + "}" : line)));
  record.confusion.clear();
  return record;
}

/// What the confusion matrix of the last evaluation says.
void look_at_answers(const record::EvalRecord& eval, RunFiles& into) {
  const auto& confusion = eval.confusion;
  if (confusion.empty()) return;
  std::vector<int64_t> answers(confusion.size());
  int64_t all = 0, largest = 0, truths = 0;
  for (const auto& row : confusion) {
    const int64_t count = std::accumulate(row.begin(), row.end(), int64_t{0});
    all += count;
    largest = std::max(largest, count);
    truths += count > 0 ? 1 : 0;
    for (size_t k = 0; k < std::min(row.size(), answers.size()); ++k) answers[k] += row[k];
  }
  if (all == 0) return;
  into.majority = static_cast<double>(largest) / static_cast<double>(all);
  // A handful of other answers makes no difference, unless the truth is as lopsided.
  constexpr double kNearlyAll = 0.98;
  const auto most = static_cast<double>(*std::max_element(answers.begin(), answers.end()));
  into.one_answer = truths > 1 && into.majority < kNearlyAll && most >= kNearlyAll * static_cast<double>(all);
}

/// Whether a process shows that it holds the folder: it touches the file every five seconds.
bool held(const fs::path& folder) {
  struct stat about {};
  if (::stat((folder / "LOCK").c_str(), &about) != 0) return false;
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return now - about.st_mtim.tv_sec < 20;
}

}  // namespace

std::string stamp_of(const fs::path& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return "";
  return fmt::format("{}.{}.{}.{}", about.st_ino, about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
}

const std::string& RunFiles::setting(std::string_view name) const {
  static const std::string kNone;
  for (const auto& [key, value] : settings) {
    if (key == name) return value;
  }
  return kNone;
}

/// What was read of a run's folder, and how far.
struct SweepReader::Cached {
  /// The last loss and the number of lines of a worker's file, while it grows.
  struct LossFile {
    uint64_t offset = 0;
    int64_t lines = 0;
    double last = kUnknown;

    void read(const fs::path& path) {
      std::FILE* file = std::fopen(path.c_str(), "re");
      if (file == nullptr) return;
      std::fseek(file, 0, SEEK_END);
      const auto size = static_cast<uint64_t>(std::max(0L, std::ftell(file)));
      if (size < offset) *this = LossFile();
      std::string text(size - offset, '\0');
      std::fseek(file, static_cast<long>(offset), SEEK_SET);
      text.resize(std::fread(text.data(), 1, text.size(), file));
      std::fclose(file);
      const size_t end = text.rfind('\n');
      if (end == std::string::npos) return;
      lines += std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end) + 1, '\n');
      const size_t before = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
      const size_t begin = before == std::string::npos ? 0 : before + 1;
      last = parse_number(std::string_view(text).substr(begin, end - begin)).value_or(kUnknown);
      offset += end + 1;
    }
  };

  std::string stamp;
  std::shared_ptr<const RunFiles> files;
  std::string problem;        ///< why it cannot be read
  std::string curve_problem;  ///< why its curves cannot
  StepCurve steps;
  std::vector<LossFile> losses;

  /// True where something is new.
  bool refresh(const RunData& run, size_t points) {
    const record::RunFolder folder{run.path};
    std::error_code unreadable;  // a folder that we may not look into is one that cannot be read
    const bool done = fs::exists(folder.done(), unreadable);
    const bool alive = !done && held(run.path);
    const std::string now =
        fmt::format("{}|{}|{}|{}|{}", stamp_of(folder.spec()), stamp_of(folder.result()), done,
                    done ? "" : stamp_of(folder.steps()), done ? "" : stamp_of(folder.evals())) +
        (alive ? "|alive" : "");
    if (files && now == stamp) return false;
    stamp = now;
    problem.clear();
    curve_problem.clear();
    auto fresh = std::make_shared<RunFiles>();
    fresh->alive = alive;
    try {
      if (fs::exists(folder.spec())) read(run, done, points, *fresh);
    } catch (const Error& error) {
      problem = utf8(error.what());
    } catch (const nlohmann::json::exception&) {
      problem = "a field is missing or of another kind";
    } catch (const fs::filesystem_error& error) {
      problem = utf8(error.code().message());
    }
    if (!problem.empty()) fresh->record.reset();
    files = std::move(fresh);
    return true;
  }

  void read(const RunData& run, bool done, size_t points, RunFiles& into) {
    const record::RunFolder folder{run.path};
    into.settings = settings_of(read_json(folder.spec(), "settings of the run"));
    if (done) {
      into.record = record::run_from_json(read_json(folder.result(), "result"));
      if (into.record->eval) {
        look_at_answers(*into.record->eval, into);
        into.record->eval->confusion.clear();
      }
    } else if (fs::exists(folder.environment())) {
      const Json environment = read_json(folder.environment(), "environment");
      into.cpu = environment.value("cpu", "");
      if (const auto from = environment.find("provenance"); from != environment.end()) {
        into.host = from->value("host", "");
        into.command = from->value("command", "");
        into.date = from->value("date", "");
        into.version = from->value("version", "");
        into.commit = from->value("commit", "");
      }
    }
    if (run.kind == "tune") return;  // one of many that nobody draws
    // What the run came to is worth telling even where its curves are damaged.
    try {
      read_curves(folder, done, points, into);
    } catch (const DataError& error) {
      curve_problem = utf8(error.what());
    } catch (const nlohmann::json::exception&) {
      curve_problem = "evals.jsonl is damaged";
    }
    if (done) {
      steps = StepCurve();
      losses.clear();
    }
  }

  void read_curves(const record::RunFolder& folder, bool done, size_t points, RunFiles& into) {
    steps.read(folder.steps());
    if (fs::exists(folder.evals())) {
      for (const std::string& line : record::read_lines(folder.evals(), "evaluations"))
        into.evals.push_back(eval_of(line));
    }
    // Of workers that run free, each line is one worker's time: together they are longer than the run.
    const bool free = rhythm_of(into.setting("strategy.name")) == spec::Rhythm::kFree;
    double scale = 1;
    if (into.record && steps.seconds() > 0 && into.record->train_seconds > 0) {
      scale = into.record->train_seconds / steps.seconds();
    } else if (free) {
      scale = 1 / std::max(1.0, parse_number(into.setting("comm.workers")).value_or(1));
    }
    for (const record::EvalRecord& eval : into.evals) {
      into.eval_examples.push_back(steps.examples_at(eval.step));
      into.eval_seconds.push_back(steps.seconds_at(eval.step) * scale);
    }
    into.first_loss = steps.first_loss();
    into.last_loss = steps.last_loss();
    into.recorded_steps = static_cast<int64_t>(steps.size());
    into.curve = steps.thinned(points, scale);
    if (!done) into.progress = progress_of(folder, free, scale, into);
  }

  Progress progress_of(const record::RunFolder& folder, bool free, double scale, const RunFiles& files_now) {
    Progress progress;
    progress.step = steps.last_step();
    progress.of = parse_integer(files_now.setting("train.steps")).value_or(0);
    progress.step_seconds = steps.recent_ms() * scale / 1e3;
    progress.bytes_per_s = steps.recent_bytes() / (steps.recent_ms() / 1e3);
    for (int rank = 0; fs::exists(folder.losses(rank)); ++rank) {
      if (losses.size() <= static_cast<size_t>(rank)) losses.emplace_back();
      LossFile& file = losses[static_cast<size_t>(rank)];
      file.read(folder.losses(rank));
      progress.losses_by_worker.push_back(file.last);
      if (free) progress.updates_by_worker.push_back(file.lines);
    }
    return progress;
  }
};

SweepReader::SweepReader(fs::path folder) : folder_(std::move(folder)) {}
SweepReader::~SweepReader() = default;

bool SweepReader::refresh() {
  std::error_code error;
  if (!fs::is_directory(folder_, error))
    throw DataError("{} is no folder; give the folder that compare or train wrote", utf8(folder_.string()));
  const fs::path file = folder_ / "sweep.json";
  SweepData fresh;
  std::string text;
  if (fs::exists(file, error)) {
    try {
      text = read_file(file, "sweep");
      fresh = planned_sweep(folder_, text);
    } catch (const Error& problem) {
      fresh = found_runs(folder_);
      fresh.notes.push_back(
          {.code = "damaged",
           .text =
               fmt::format("sweep.json could not be read ({}): runs are told apart by their settings alone",
                           problem.what())});
    }
  } else {
    fresh = found_runs(folder_);
  }
  const std::string attached = attachments_stamp(folder_);
  fresh.attached = attached == attached_ ? data_.attached : read_attachments(folder_);
  const std::vector<Note>& notes = fresh.attached.notes;
  if (fresh.runs.empty() && !fresh.attached.any()) {
    const std::string damaged = notes.empty() ? "" : "; " + notes[0].text;
    throw DataError(
        "{} holds no run: neither a sweep.json nor a folder with a spec.json, nor an advice.json or a "
        "*.placement.json; give the folder that compare, train or advise wrote{}",
        utf8(folder_.string()), damaged);
  }
  fresh.notes.insert(fresh.notes.end(), notes.begin(), notes.end());
  // Whoever ran it may have been killed: then nobody said that it stopped.
  const bool abandoned = fresh.planned && fresh.state == "running" && !held(folder_);
  if (abandoned) fresh.state = "stopped";
  const bool changed = read_runs(fresh);
  const bool same_plan = text == plan_ && attached == attached_ && fresh.runs.size() == data_.runs.size() &&
                         fresh.state == data_.state;
  if (same_plan && !changed) return false;
  plan_ = std::move(text);
  attached_ = attached;
  data_ = std::move(fresh);
  return true;
}

bool SweepReader::read_runs(SweepData& into) {
  const size_t share = kAllPoints / std::max<size_t>(1, into.runs.size());
  const size_t points = share < kFewestPoints ? 0 : std::min(kCurvePoints, share);
  if (points == 0) into.omitted_curves = static_cast<int64_t>(into.runs.size());
  std::vector<Cached*> cached;
  std::vector<size_t> to_read;  // arms may share a run, which is read once
  std::set<Cached*> seen;
  for (const RunData& run : into.runs) {
    std::unique_ptr<Cached>& entry = cache_[run.path];
    if (!entry) entry = std::make_unique<Cached>();
    if (seen.insert(entry.get()).second) to_read.push_back(cached.size());
    cached.push_back(entry.get());
  }
  std::atomic<size_t> next = 0;
  std::atomic<bool> changed = false;
  const auto work = [&] {
    for (size_t i = next++; i < to_read.size(); i = next++) {
      if (cached[to_read[i]]->refresh(into.runs[to_read[i]], points)) changed = true;
    }
  };
  const size_t helpers =
      std::min<size_t>(std::max(1U, std::thread::hardware_concurrency()), 1 + to_read.size() / 16);
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < helpers; ++i) threads.emplace_back(work);
  work();
  threads.clear();

  std::vector<std::string> damaged, without_curve, lost;
  for (size_t i = 0; i < into.runs.size(); ++i) {
    RunData& run = into.runs[i];
    run.files = cached[i]->files;
    const bool begun = !run.files->settings.empty();
    if (!cached[i]->curve_problem.empty())
      without_curve.push_back(fmt::format("{} ({})", run.folder, cached[i]->curve_problem));
    if (!cached[i]->problem.empty()) {
      damaged.push_back(fmt::format("{} ({})", run.folder, cached[i]->problem));
      run.state = "failed";
      if (run.message.empty()) run.message = cached[i]->problem;
    } else if (run.files->record && (!into.planned || run.state == "done" || run.state == "running")) {
      // A record that the sweep has not taken for its run's (other data, say) is not its result.
      run.state = "done";
    } else if (!into.planned || (run.state == "running" && into.state == "stopped")) {
      run.state = run.files->alive ? "running" : "stopped";
    } else if (run.state == "done") {
      lost.push_back(run.folder);
      run.state = "failed";
      run.message = "its folder is no longer there, or not finished";
    }
    if (!into.planned && begun) run.seed = parse_integer(run.files->setting("train.seed")).value_or(0);
    if (begun && std::isnan(run.lr)) run.lr = parse_number(run.files->setting("optim.lr")).value_or(kUnknown);
  }
  const auto any = [&](const char* state) {
    return std::any_of(into.runs.begin(), into.runs.end(),
                       [&](const RunData& run) { return run.state == state; });
  };
  if (!into.planned) into.state = any("running") ? "running" : any("stopped") ? "stopped" : "finished";
  if (!damaged.empty())
    into.notes.push_back(
        {.code = "damaged", .text = "could not be read and are left out: " + some_of(damaged)});
  if (!without_curve.empty())
    into.notes.push_back(
        {.code = "damaged", .text = "curves that could not be read: " + some_of(without_curve)});
  if (!lost.empty())
    into.notes.push_back(
        {.code = "damaged", .text = "done by sweep.json but no longer there: " + some_of(lost)});
  return changed;
}

}  // namespace syncopate::report
