#include "syncopate/base/folder_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/process.h"
#include "syncopate/base/text.h"

namespace syncopate {
namespace {

enum class Outcome { kTaken, kHeld, kUnknown };

/// A lock of the open file, not of the process: another descriptor of ours is refused as well.
Outcome lock_file(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd, F_OFD_SETLK, &whole) == 0) return Outcome::kTaken;
  return errno == EAGAIN || errno == EACCES ? Outcome::kHeld : Outcome::kUnknown;
}

std::string read_line(int fd) {
  std::array<char, 4096> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  const std::string_view whole(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  return first_line(whole);
}

/// "process PID on HOST since ...": the host; empty where the line is not ours.
std::string host_in(const std::string& line) {
  const auto words = split(line, ' ');
  return words.size() > 3 && words[0] == "process" && words[2] == "on" ? std::string(words[3]) : "";
}

bool process_lives(const std::string& line) {
  const auto words = split(line, ' ');
  const auto pid = words.size() > 1 ? parse_integer(words[1]) : std::nullopt;
  return pid && *pid > 0 && (::kill(static_cast<pid_t>(*pid), 0) == 0 || errno == EPERM);
}

timespec touched(int fd) {
  struct stat status {};
  ::fstat(fd, &status);
  return status.st_mtim;
}

/// Whether somebody touches the file while we look.
bool beats(int fd, std::chrono::milliseconds patience) {
  const timespec before = touched(fd);
  const Stopwatch watch;
  while (watch.seconds() < std::chrono::duration<double>(patience).count()) {
    std::this_thread::sleep_for(std::min(patience / 20, std::chrono::milliseconds(200)));
    const timespec now = touched(fd);
    if (now.tv_sec != before.tv_sec || now.tv_nsec != before.tv_nsec) return true;
  }
  return false;
}

bool same_file(int fd, const std::filesystem::path& path) {
  struct stat ours {
  }, theirs{};
  return ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &theirs) == 0 && ours.st_ino == theirs.st_ino &&
         ours.st_dev == theirs.st_dev;
}

/// Makes the folder; those that were not there, innermost first.
std::vector<std::filesystem::path> make_folders(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> missing;
  for (auto path = std::filesystem::absolute(folder).lexically_normal(); !std::filesystem::exists(path);
       path = path.parent_path()) {
    if (!path.filename().empty()) missing.push_back(path);
  }
  make_folder(folder);
  return missing;
}

}  // namespace

class FolderLock::Held {
 public:
  Held(int fd, std::filesystem::path path, std::vector<std::filesystem::path> made,
       std::chrono::milliseconds beat)
      : fd_(fd),
        path_(std::move(path)),
        made_(std::move(made)),
        thread_([this, beat] { keep_touching(beat); }) {}
  ~Held() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
    if (same_file(fd_, path_)) ::unlink(path_.c_str());
    ::close(fd_);
    for (const std::filesystem::path& folder : made_)
      ::rmdir(folder.c_str());  // fails where something is in it
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  void keep_touching(std::chrono::milliseconds beat) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, beat, [this] { return over_; })) ::futimens(fd_, nullptr);
  }

  int fd_;
  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  ///< innermost first
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

FolderLock::FolderLock(std::unique_ptr<Held> held) : held_(std::move(held)) {}
FolderLock::FolderLock(FolderLock&&) noexcept = default;
FolderLock& FolderLock::operator=(FolderLock&&) noexcept = default;
FolderLock::~FolderLock() = default;

std::optional<FolderLock> FolderLock::take(const std::filesystem::path& folder,
                                           const FolderLockOptions& options, std::string* holder) {
  std::vector<std::filesystem::path> made;
  const std::filesystem::path path = folder / "LOCK";
  const std::string host = options.host.empty() ? host_name() : options.host;
  while (true) {
    // In every round: the last holder may have removed what it made.
    for (const auto& one : make_folders(folder)) {
      if (std::find(made.begin(), made.end(), one) == made.end()) made.push_back(one);
    }
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0)
      throw DataError("cannot write {}: {}; choose another folder", path.string(), std::strerror(errno));
    const Outcome outcome = lock_file(fd);
    const std::string line = read_line(fd), there = host_in(line);
    const bool elsewhere = !there.empty() && there != host;
    bool held = outcome == Outcome::kHeld;
    if (!held && elsewhere) {  // locks may not reach that machine
      if (options.on_wait)
        options.on_wait(
            fmt::format("{} was in use by {}; waiting for a sign of life", folder.string(), line));
      held = beats(fd, options.patience);
    }
    if (outcome == Outcome::kUnknown && !elsewhere) held = process_lives(line);
    if (held) {
      ::close(fd);
      if (holder != nullptr) *holder = line.empty() ? "another process" : line;
      return std::nullopt;
    }
    if (!same_file(fd, path)) {  // its last holder has just removed it
      ::close(fd);
      continue;
    }
    const std::string mine = fmt::format("process {} on {} since {:%Y-%m-%d %H:%M:%S} UTC: {}\n", ::getpid(),
                                         host, fmt::gmtime(std::time(nullptr)), options.purpose);
    if (::pwrite(fd, mine.data(), mine.size(), 0) < 0 ||
        ::ftruncate(fd, static_cast<off_t>(mine.size())) != 0) {
      const int code = errno;
      ::close(fd);
      throw DataError("cannot write {}: {}; free some space or choose another folder", path.string(),
                      std::strerror(code));
    }
    return FolderLock(std::make_unique<Held>(fd, path, made, options.beat));
  }
}

}  // namespace syncopate
