#include "syncopate/data/kept_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/file_lock.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/notes.h"
#include "syncopate/base/process.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/data/file_hashes.h"

namespace syncopate::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckedNote = "checked";
constexpr const char* kNote = "note.json";
constexpr const char* kHalfWritten = ".writing";

/// A text with its checksum in the first line.
void write_sealed(const fs::path& path, const std::string& text) {
  write_file_atomically(path, hexadecimal(checksum(text)) + "\n" + text);
}

/// What is wrong, without the advice behind it, which is about data.
std::string reason_of(const DataError& error) {
  const std::string_view sentence = error.what();
  return std::string(sentence.substr(0, sentence.find("; ")));
}

/// A cache that cannot be written is no bad data.
template <typename Write>
void writable(const Write& write) {
  try {
    write();
  } catch (const DataError& error) {
    throw CacheUnavailable(reason_of(error));
  }
}

/// Nothing where there is none, or one that is damaged.
std::optional<std::string> read_sealed(const fs::path& path) {
  std::error_code failed;
  const bool exists = fs::exists(path, failed);
  if (failed) throw CacheUnavailable(failed.message());
  if (!exists) return std::nullopt;
  try {
    const std::string whole = read_file(path, "token cache");
    const size_t end = whole.find('\n');
    if (end == whole.npos || whole.substr(0, end) != hexadecimal(checksum(whole.substr(end + 1))))
      return std::nullopt;
    return whole.substr(end + 1);
  } catch (const DataError& error) {  // which is no damage: it is not made again
    throw CacheUnavailable(reason_of(error));
  }
}

/// Which start of this machine it is: what was read since then is still what it was, if nobody wrote.
std::string this_boot() {
  try {
    return std::string(trim(read_file("/proc/sys/kernel/random/boot_id", "number of this start")));
  } catch (const DataError&) {
    return "";
  }
}

/// Whose locks exclude each other, if a file system's locks hold on one machine alone: containers of one
/// kernel are the same, machines of one name are not.
std::string this_kernel() {
  const std::string boot = this_boot();
  return hexadecimal(checksum(boot.empty() ? host_name() : boot));
}

/// A line for each start of a machine that found an entry's files sound, and the state they were in then.
/// DataError where the files are gone.
std::string line_of_soundness(const fs::path& entry, const std::vector<std::string>& names) {
  std::string state;
  for (const std::string& name : names) state += stamp_of(token_file(entry, name)) + "\n";
  return fmt::format("{} {}", this_boot(), hexadecimal(checksum(state)));
}

std::vector<std::string> lines_of_soundness(const fs::path& entry) {
  try {
    const std::string whole = read_file(entry / kCheckedNote, "token cache");
    const std::vector<std::string_view> lines = split(trim(whole), '\n');
    return {lines.begin(), lines.end()};
  } catch (const DataError&) {  // nobody has looked yet
    return {};
  }
}

bool known_to_be_sound(const fs::path& entry, const std::vector<std::string>& names) {
  if (this_boot().empty()) return false;
  const std::vector<std::string> lines = lines_of_soundness(entry);
  try {
    return std::find(lines.begin(), lines.end(), line_of_soundness(entry, names)) != lines.end();
  } catch (const DataError&) {
    return false;
  }
}

void note_soundness(const fs::path& entry, const std::vector<std::string>& names) {
  constexpr size_t kMost = 64;  // machines that share the folder, more or less; the oldest lines go first
  std::vector<std::string> lines = lines_of_soundness(entry);
  try {
    lines.push_back(line_of_soundness(entry, names));
    if (lines.size() > kMost) lines.erase(lines.begin(), lines.end() - kMost);
    write_file_atomically(entry / kCheckedNote, fmt::format("{}\n", fmt::join(lines, "\n")));
  } catch (const DataError&) {  // another's folder: every start reads it all
  }
}

/// When anything in a folder was last written; nothing where that cannot be said.
std::optional<fs::file_time_type> last_written(const fs::path& folder) {
  std::error_code failed;
  fs::file_time_type last = fs::last_write_time(folder, failed);
  if (failed) return std::nullopt;
  fs::directory_iterator file(folder, failed);
  for (; !failed && file != fs::directory_iterator(); file.increment(failed)) {
    last = std::max(last, file->last_write_time(failed));
    if (failed) break;
  }
  return failed ? std::nullopt : std::optional(last);
}

}  // namespace

/// The only process of this host that looks for, and makes, what is kept of some files. Where the folder is
/// another's, there is nothing to wait for: what it holds may be used, but nothing made.
class KeptFolder::Turn {
 public:
  explicit Turn(const KeptFolder& kept) : path_(kept.folder_ / (kept.of_files_ + ".lock")) {
    std::error_code failed;
    fs::create_directories(kept.folder_, failed);
    if (failed) throw CacheUnavailable(failed.message());
    const uintmax_t before = failures();
    try {
      lock_.emplace(path_, [&] {
        if (kept.waiting_) tell("waiting for another process that makes the tokens of {}", kept.name_);
      });
      if (failures() != before) refused_ = "another process has just failed to write there";
    } catch (const std::system_error& error) {
      if (error.code().value() != EACCES && error.code().value() != EROFS && error.code().value() != EPERM)
        throw CacheUnavailable(error.code().message());
      refused_ = error.code().message();
    }
  }
  void require_writable() const {
    if (!refused_.empty()) throw CacheUnavailable(refused_);
  }
  /// By the clock of the file system; nothing where the folder is another's.
  std::optional<fs::file_time_type> now() const {
    if (!refused_.empty() || ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0) != 0) return std::nullopt;
    std::error_code failed;
    const fs::file_time_type now = fs::last_write_time(path_, failed);
    return failed ? std::nullopt : std::optional(now);
  }
  /// Tells those who wait that trying would only take time.
  void note_failure() const {
    std::error_code ignored;
    fs::resize_file(path_, failures() + 1, ignored);
  }

 private:
  /// The size of the lock's file, which takes no room on a disk that is full: nothing is written to it.
  uintmax_t failures() const {
    std::error_code absent;
    const uintmax_t count = fs::file_size(path_, absent);
    return absent ? 0 : count;
  }

  const fs::path path_;
  std::optional<FileLock> lock_;
  std::string refused_;
};

KeptFolder::KeptFolder(fs::path folder, std::vector<fs::path> files, std::string name, bool waiting)
    : folder_(std::move(folder)), files_(std::move(files)), name_(std::move(name)), waiting_(waiting) {
  std::string paths;
  for (const fs::path& file : files_) paths += fs::absolute(file).lexically_normal().string() + "\n";
  of_files_ = hexadecimal(checksum(paths));
}

uintmax_t KeptFolder::bytes() const {
  uintmax_t sum = 0;
  std::error_code unreadable;  // reading says why
  for (const fs::path& file : files_) {
    const uintmax_t size = fs::file_size(file, unreadable);
    if (!unreadable) sum += size;
  }
  return sum;
}

std::string KeptFolder::key_of(const nlohmann::json& what) {
  nlohmann::json all{{"what", what}, {"files", nlohmann::json::array()}};
  stamps_.clear();
  for (const fs::path& file : files_) stamps_.push_back(stamp_of(file));
  const std::vector<std::string> hashes = hashes_of(files_, folder_ / (of_files_ + ".files"));
  for (size_t i = 0; i < files_.size(); ++i)
    all["files"].push_back({fs::absolute(files_[i]).lexically_normal().string(), hashes[i]});
  return hexadecimal(checksum(all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

template <typename Work>
auto KeptFolder::of_unchanged(const Work& work) const {
  try {
    auto made = work();
    require_unchanged();
    return made;
  } catch (const CannotWrite&) {
    throw;
  } catch (...) {
    require_unchanged();  // or that is why
    throw;
  }
}

std::string KeptFolder::text(const nlohmann::json& what, const std::function<std::string()>& make) {
  const Turn turn(*this);
  const fs::path path = folder_ / (key_of(what) + ".vocabulary");
  try {
    if (auto known = read_sealed(path)) return *known;
  } catch (const CacheUnavailable&) {  // to learn it again takes time and is not wrong
  }
  turn.require_writable();
  const std::string made = of_unchanged(make);
  try {
    write_sealed(path, made);
  } catch (const DataError&) {
    turn.note_failure();
  }
  return made;
}

KeptFolder::Entry KeptFolder::entry(const Recipe& recipe) {
  const Turn turn(*this);
  if (const auto now = turn.now()) sweep(*now);
  const fs::path place = folder_ / key_of(recipe.what);
  std::error_code ignored;
  const bool found = fs::exists(place, ignored);
  if (Entry known = open(place, recipe); !known.files.empty()) {
    known.notes.push_back(fmt::format("tokens read from {}", place.string()));
    return known;
  }
  turn.require_writable();
  if (found && !remove_tree(place)) throw CacheUnavailable(std::strerror(errno));
  std::string note;
  try {
    note = make(place, recipe);
  } catch (const CacheUnavailable&) {
    turn.note_failure();
    throw;
  }
  Entry made = open(place, recipe);
  if (made.files.empty()) throw CacheUnavailable("what was just written there reads otherwise");
  made.notes.push_back(note);
  if (found)
    made.notes.push_back(warning(fmt::format("{} was damaged and has been made again", place.string())));
  return made;
}

KeptFolder::Entry KeptFolder::open(const fs::path& entry, const Recipe& recipe) const {
  const auto note = read_sealed(entry / kNote);
  if (!note) return {};
  Entry found;
  try {
    for (const std::string& name : recipe.names) {
      found.files.push_back(TokenFile::open(token_file(entry, name)));
      if (!found.files.back()) return {};
    }
    if (!known_to_be_sound(entry, recipe.names)) {
      for (const auto& file : found.files) {
        if (!file->sound()) return {};
      }
      note_soundness(entry, recipe.names);
    }
  } catch (const std::system_error& error) {  // which is no damage: it is not made again
    throw CacheUnavailable(error.code().message());
  }
  found.note = nlohmann::json::parse(*note);
  return found;
}

void KeptFolder::require_unchanged() const {
  for (size_t i = 0; i < files_.size(); ++i) {
    if (stamp_of(files_[i]) != stamps_[i])
      throw DataError("{} was changed while it was read; start again when it is whole", files_[i].string());
  }
}

void KeptFolder::require_room(double needed) const {
  struct statvfs disk {};
  if (::statvfs(folder_.c_str(), &disk) != 0) return;  // writing says why
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (free >= needed) return;
  throw CacheUnavailable(fmt::format("it would need about {}, but {} are free", bytes_for_people(needed),
                                     bytes_for_people(free)));
}

fs::path KeptFolder::half_written(const std::string& whose) const {
  return folder_ / fmt::format("{}.{}{}", of_files_, whose, kHalfWritten);
}

/// What killed processes of other machines left half-written, and of this one before it was started again.
/// Who still writes has touched it in the last day, by the clock of the file system, which `now` is of.
void KeptFolder::sweep(fs::file_time_type now) const {
  static constexpr std::chrono::hours kAbandoned(24);
  const fs::path aside = half_written(this_kernel() + ".old");
  const auto is_abandoned = [now](const fs::path& folder) {
    const auto last = last_written(folder);
    return last && now - *last > kAbandoned;
  };
  std::error_code failed;
  std::vector<fs::path> found;
  fs::directory_iterator each(folder_, failed);
  for (; !failed && each != fs::directory_iterator(); each.increment(failed)) {
    const std::string name = each->path().filename().string();
    std::error_code unknown;
    if (name.starts_with(of_files_ + ".") && name.ends_with(kHalfWritten) && each->is_directory(unknown))
      found.push_back(each->path());
  }
  for (const fs::path& folder : found) {
    if (!is_abandoned(folder) || !remove_tree(aside)) continue;
    // Removing may have taken long, and its owner may come back and begin anew: not below its hands.
    if (!is_abandoned(folder)) continue;
    fs::rename(folder, aside, failed);
    if (!failed) remove_tree(aside);
  }
}

/// Gives the sentence about it.
std::string KeptFolder::make(const fs::path& entry, const Recipe& recipe) {
  const Stopwatch watch;
  // The same name every time, so that what a killed run left is found by the next one; another on every
  // machine, since locks of some file systems hold on one machine alone.
  const fs::path writing = half_written(this_kernel());
  try {
    if (!remove_tree(writing)) throw CacheUnavailable(std::strerror(errno));
    writable([&] { make_folder(writing); });
    require_room(recipe.room);
    const nlohmann::json note = of_unchanged([&] { return recipe.make(writing); });
    const std::string text = note.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    writable([&] { write_sealed(writing / kNote, text); });
    std::error_code failed;
    fs::rename(writing, entry, failed);
    std::error_code ignored;
    if (failed && !fs::exists(entry, ignored)) throw CacheUnavailable(failed.message());
    if (failed) {  // another machine's process was first
      remove_tree(writing);
      return fmt::format("tokens read from {}", entry.string());
    }
  } catch (const CannotWrite& error) {
    remove_tree(writing);
    throw CacheUnavailable(error.code().message());
  } catch (...) {
    remove_tree(writing);
    throw;
  }
  note_soundness(entry, recipe.names);
  return fmt::format("tokens kept in {} for the other workers and later runs, made in {:.1f} s",
                     entry.string(), watch.seconds());
}

}  // namespace syncopate::data
