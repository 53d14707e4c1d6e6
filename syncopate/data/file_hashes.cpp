#include "syncopate/data/file_hashes.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/hash.h"

namespace syncopate::data {
namespace {

constexpr time_t kSettled = 2;  // seconds; file systems count in nanoseconds to two seconds

struct stat status_of(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    throw DataError("cannot read {}: {}; check the path", path.string(), std::strerror(errno));
  return found;
}

std::string stamp_in(const struct stat& file) {
  // Without the device, whose number is another on every machine that mounts it.
  return fmt::format("{}-{}-{}.{:09}-{}.{:09}", file.st_ino, file.st_size, file.st_mtim.tv_sec,
                     file.st_mtim.tv_nsec, file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
}

/// Read, not mapped: a file that becomes shorter meanwhile is an error, not a signal.
std::string content_hash(const std::filesystem::path& path) {
  constexpr size_t kPortion = size_t{1} << 22;
  Checksum sum;
  read_portions(path, "text", kPortion, [&](std::string_view portion) { sum.add(portion); });
  return hexadecimal(sum.value());
}

nlohmann::json read_hashes(const std::filesystem::path& book) {
  std::error_code ignored;
  if (!std::filesystem::exists(book, ignored)) return nlohmann::json::object();
  try {
    nlohmann::json known = nlohmann::json::parse(read_file(book, "book of hashes"), nullptr, false);
    if (known.is_object()) return known;
  } catch (const DataError&) {  // another's, perhaps: the files are read then
  }
  return nlohmann::json::object();
}

}  // namespace

std::string stamp_of(const std::filesystem::path& path) { return stamp_in(status_of(path)); }

std::vector<std::string> hashes_of(const std::vector<std::filesystem::path>& files,
                                   const std::filesystem::path& book, time_t now_seconds) {
  const nlohmann::json known = read_hashes(book);
  nlohmann::json now = nlohmann::json::object();
  std::vector<std::string> hashes;
  for (const std::filesystem::path& file : files) {
    // A hash, since a name may be no UTF-8, which a book has to be.
    const std::string name =
        hexadecimal(checksum(std::filesystem::absolute(file).lexically_normal().string()));
    const struct stat status = status_of(file);
    const std::string stamp = stamp_in(status);
    const auto found = known.find(name);
    if (found != known.end() && found->is_object() && found->value("stamp", "") == stamp) {
      now[name] = *found;
    } else {
      // Before it is read: what is written meanwhile is then younger. The time of the last change is the
      // system's own; that of the last writing may be set to any.
      const bool settled = now_seconds - status.st_ctim.tv_sec > kSettled;
      now[name] = {{"stamp", settled ? stamp : ""}, {"hash", content_hash(file)}};
    }
    hashes.push_back(now[name].value("hash", ""));
  }
  if (now != known) {
    try {
      write_file_atomically(book, now.dump(1) + "\n");
    } catch (const DataError&) {  // reading the files again is slower, not wrong
    }
  }
  return hashes;
}

}  // namespace syncopate::data
