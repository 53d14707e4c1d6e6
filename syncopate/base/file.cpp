#include "syncopate/base/file.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "syncopate/base/error.h"

namespace syncopate {
namespace {

/// Some bytes, at least one; 0: at the end.
size_t read_some(int fd, char* into, size_t most, const std::filesystem::path& path, std::string_view what) {
  while (true) {
    const ssize_t got = ::read(fd, into, most);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR)
      throw DataError("cannot read the {} {}: {}", what, path.string(), std::strerror(errno));
  }
}

void write_all(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      throw DataError("cannot write {}: {}; free some space or choose another folder", path.string(),
                      std::strerror(errno));
    }
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
}

}  // namespace

Descriptor open_to_read(const std::filesystem::path& path, std::string_view what) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open())
    throw DataError("cannot read the {} {}: {}; check the path", what, path.string(), std::strerror(errno));
  return file;
}

struct stat status_of_plain(const Descriptor& file, const std::filesystem::path& path,
                            std::string_view what) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw DataError("cannot read the {} {}: it is not a plain file; give a file", what, path.string());
  return status;
}

std::string read_file(const std::filesystem::path& path, std::string_view what) {
  const Descriptor file = open_to_read(path, what);
  // One byte more, which shows that there is none. Files of /proc say that they are empty, and are not.
  std::string text(static_cast<size_t>(status_of_plain(file, path, what).st_size) + 1, '\0');
  size_t done = 0;
  while (true) {
    if (done == text.size()) text.resize(2 * text.size());
    const size_t got = read_some(file.get(), text.data() + done, text.size() - done, path, what);
    if (got == 0) break;
    done += got;
  }
  text.resize(done);
  return text;
}

void read_portions(const std::filesystem::path& path, std::string_view what, size_t most,
                   const std::function<void(std::string_view)>& use) {
  const Descriptor file = open_to_read(path, what);
  std::vector<char> portion(most);
  while (const size_t got = read_some(file.get(), portion.data(), most, path, what))
    use({portion.data(), got});
}

void write_file_atomically(const std::filesystem::path& path, const std::vector<std::string_view>& pieces) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored))
    return write_file_atomically(std::filesystem::canonical(path), pieces);
  const bool device = std::filesystem::exists(path, ignored) && std::filesystem::is_other(path, ignored);
  if (device) {  // a pipe or /dev/null is written to, not replaced
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    for (const std::string_view piece : pieces) write_all(file.get(), piece, path);
    return;
  }
  std::filesystem::path fresh = path;
  fresh += ".writing";
  try {
    const Descriptor file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0) {
      throw DataError("cannot write {}: {}; choose another folder", path.string(), std::strerror(errno));
    }
    for (const std::string_view piece : pieces) write_all(file.get(), piece, path);
    if (::fsync(file.get()) != 0) {
      throw DataError("cannot write {}: {}; free some space or choose another folder", path.string(),
                      std::strerror(errno));
    }
    if (::rename(fresh.c_str(), path.c_str()) != 0) {
      throw DataError("cannot write {}: {}", path.string(), std::strerror(errno));
    }
  } catch (...) {
    ::unlink(fresh.c_str());
    throw;
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, std::vector<std::string_view>{text});
}

void make_folder(const std::filesystem::path& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) throw DataError("cannot make the folder {}: {}", path.string(), code.message());
}

bool remove_tree(const std::filesystem::path& path) noexcept {
  const auto remove = [](const char* name, const struct stat*, int, FTW*) {
    return std::remove(name) == 0 || errno == ENOENT ? 0 : -1;  // others may tidy up here too
  };
  constexpr int kOpenFolders = 16;
  return ::nftw(path.c_str(), remove, kOpenFolders, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT;
}

}  // namespace syncopate
