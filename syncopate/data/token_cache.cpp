#include "syncopate/data/token_cache.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/file_lock.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/notes.h"
#include "syncopate/base/ordered_work.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/data/file_hashes.h"
#include "syncopate/data/token_file.h"

namespace syncopate::data {
namespace {

namespace fs = std::filesystem;
using corpora::Split;

/// Another number whenever the same files, settings and vocabulary would become other tokens than before.
constexpr int kTokensVersion = 1;
constexpr const char* kCheckedNote = "checked";
constexpr const char* kCorpusNote = "corpus.json";

std::string hexadecimal(uint64_t number) { return fmt::format("{:016x}", number); }

/// A text with its checksum in the first line.
void write_sealed(const fs::path& path, const std::string& text) {
  write_file_atomically(path, hexadecimal(checksum(text)) + "\n" + text);
}

std::optional<std::string> read_sealed(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    const std::string whole = read_file(path, "token cache");
    const size_t end = whole.find('\n');
    if (end == whole.npos || whole.substr(0, end) != hexadecimal(checksum(whole.substr(end + 1))))
      return std::nullopt;
    return whole.substr(end + 1);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

fs::path token_file(const fs::path& entry, Split split) {
  return entry / fmt::format("{}.tokens", corpora::name_of(split));
}

/// Which start of this machine it is: what was read since then is still what it was, if nobody wrote.
std::string this_boot() {
  try {
    return read_file("/proc/sys/kernel/random/boot_id", "number of this start");
  } catch (const DataError&) {
    return "";
  }
}

/// The state in which an entry's files were found sound.
std::string state_of(const fs::path& entry) {
  std::string state;
  for (const Split split : corpora::kSplits) state += stamp_of(token_file(entry, split)) + "\n";
  return state + this_boot();
}

bool known_to_be_sound(const fs::path& entry) {
  try {
    return !this_boot().empty() && read_file(entry / kCheckedNote, "token cache") == state_of(entry);
  } catch (const DataError&) {  // nobody has looked yet
    return false;
  }
}

void note_soundness(const fs::path& entry) {
  try {
    write_file_atomically(entry / kCheckedNote, state_of(entry));
  } catch (const DataError&) {  // another's folder: every start reads it all
  }
}

/// What became of a batch of documents.
struct TokenBatch {
  Split split = Split::kTrain;
  std::vector<int32_t> pieces;
  size_t bytes = 0;  ///< of text
};

}  // namespace

/// The only process of this host that looks for, and makes, what is kept of a corpus. Where the folder is
/// another's, there is nothing to wait for: what it holds may be used, but nothing made.
class TokenCache::Turn {
 public:
  explicit Turn(const TokenCache& cache) {
    std::error_code failed;
    fs::create_directories(cache.folder_, failed);
    if (failed) throw CacheUnavailable(failed.message());
    try {
      lock_.emplace(cache.folder_ / (cache.name_ + ".lock"), [&] {
        if (cache.display_.waiting)
          tell("waiting for another process that makes the tokens of {}", cache.corpus_.source.path.string());
      });
    } catch (const std::system_error& error) {
      if (error.code().value() != EACCES && error.code().value() != EROFS && error.code().value() != EPERM)
        throw CacheUnavailable(error.code().message());
      refused_ = error.code().message();
    }
  }
  void require_writable() const {
    if (!lock_) throw CacheUnavailable(refused_);
  }

 private:
  std::optional<FileLock> lock_;
  std::string refused_;
};

TokenCache::TokenCache(fs::path folder, CachedCorpus corpus, Display display)
    : folder_(std::move(folder)),
      corpus_(std::move(corpus)),
      display_(display),
      reader_(corpus_.source, corpus_.validation) {
  std::string paths;
  for (const fs::path& file : reader_.files()) paths += fs::absolute(file).lexically_normal().string() + "\n";
  name_ = hexadecimal(checksum(paths));
}

uintmax_t TokenCache::bytes() const {
  uintmax_t sum = 0;
  std::error_code unreadable;  // reading says why
  for (const fs::path& file : reader_.files()) {
    const uintmax_t size = fs::file_size(file, unreadable);
    if (!unreadable) sum += size;
  }
  return sum;
}

std::string TokenCache::key_of(const std::string& what) {
  const corpora::CorpusSource& source = corpus_.source;
  nlohmann::json all{
      {"version", kTokensVersion},         {"path", source.path.string()},  // which the notes name
      {"documents", source.documents},     {"text", source.text},
      {"encoding", source.form.encoding},  {"separator", source.form.separator},
      {"share", corpus_.validation.share}, {"validation", corpus_.validation.path.string()},
      {"files", nlohmann::json::array()},  {"what", what}};
  const std::vector<fs::path> files = reader_.files();
  stamps_.clear();
  for (const fs::path& file : files) stamps_.push_back(stamp_of(file));
  const std::vector<std::string> hashes = hashes_of(files, folder_ / (name_ + ".files"));
  for (size_t i = 0; i < files.size(); ++i) all["files"].push_back({files[i].string(), hashes[i]});
  return hexadecimal(checksum(all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

std::string TokenCache::vocabulary(const std::string& what,
                                   const std::function<std::string(corpora::CorpusReader&)>& train) {
  const Turn turn(*this);
  const fs::path path = folder_ / (key_of(what) + ".vocabulary");
  if (auto known = read_sealed(path)) return *known;
  turn.require_writable();
  const std::string learned = train(reader_);
  try {
    write_sealed(path, learned);
  } catch (const DataError& error) {
    throw CacheUnavailable(error.what());
  }
  return learned;
}

CachedTokens TokenCache::tokens(const std::string& what, int64_t size, const MakeAppend& make_append) {
  const Turn turn(*this);
  const fs::path entry = folder_ / key_of(what);
  std::error_code ignored;
  const bool found = fs::exists(entry, ignored);
  if (CachedTokens known = open(entry); known.train) {
    known.notes.push_back(fmt::format("tokens read from {}", entry.string()));
    return known;
  }
  turn.require_writable();
  require_room();
  if (found && !remove_tree(entry)) throw CacheUnavailable(std::strerror(errno));
  std::vector<std::string> notes = make(entry, size, make_append);
  CachedTokens made = open(entry);
  check(made.train != nullptr, "tokens that were written can be read");
  made.notes.insert(made.notes.end(), notes.begin(), notes.end());
  if (found)
    made.notes.push_back(warning(fmt::format("{} was damaged and has been made again", entry.string())));
  return made;
}

CachedTokens TokenCache::open(const fs::path& entry) const {
  const auto note = read_sealed(entry / kCorpusNote);
  if (!note) return {};
  std::array<std::shared_ptr<const TokenFile>, std::size(corpora::kSplits)> files;
  for (const Split split : corpora::kSplits) {
    auto& file = files[static_cast<size_t>(split)];
    file = TokenFile::open(token_file(entry, split));
    if (!file) return {};
  }
  if (!known_to_be_sound(entry)) {
    for (const auto& file : files) {
      if (!file->sound()) return {};
    }
    note_soundness(entry);
  }
  const auto of = [&](Split split) { return files[static_cast<size_t>(split)]; };
  return {.train = of(Split::kTrain),
          .validation = of(Split::kValidation),
          .test = of(Split::kTest),
          .notes = nlohmann::json::parse(*note).at("notes").get<std::vector<std::string>>()};
}

void TokenCache::require_room() const {
  // Two bytes a piece, and a piece is four bytes of text or more in most languages.
  const double needed = 0.6 * static_cast<double>(bytes());
  struct statvfs disk {};
  if (::statvfs(folder_.c_str(), &disk) != 0) return;  // writing says why
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (free >= needed) return;
  throw CacheUnavailable(fmt::format("it would need about {}, but {} are free", bytes_for_people(needed),
                                     bytes_for_people(free)));
}

std::vector<std::string> TokenCache::make(const fs::path& entry, int64_t size,
                                          const MakeAppend& make_append) {
  const Stopwatch watch;
  fs::path writing = entry;
  writing += ".writing";
  try {
    if (!remove_tree(writing)) throw std::system_error(errno, std::generic_category());
    make_folder(writing);
    const std::vector<std::string> notes = corpus_.look(reader_);
    std::array<std::optional<TokenFileWriter>, std::size(corpora::kSplits)> writers;
    for (const Split split : corpora::kSplits)
      writers[static_cast<size_t>(split)].emplace(token_file(writing, split), size);
    constexpr int64_t kMegabyte = 1'000'000;
    Progress progress(display_.progress, static_cast<int64_t>(bytes()) / kMegabyte, "tokens of megabyte");
    int64_t read = 0;
    OrderedWork<corpora::DocumentBatch, TokenBatch> work(
        worthwhile_threads(),
        [&] {
          return [append = make_append()](corpora::DocumentBatch& batch) {
            TokenBatch made{.split = batch.split, .pieces = {}, .bytes = batch.text.size()};
            for (const std::string_view document : batch.documents()) append(document, made.pieces);
            return made;
          };
        },
        [&](TokenBatch made) {
          writers[static_cast<size_t>(made.split)]->append(made.pieces);
          read += static_cast<int64_t>(made.bytes);
          progress.update(read / kMegabyte, 0, {});
        });
    reader_.read([&](corpora::DocumentBatch batch) { work.add(std::move(batch)); });
    work.finish();
    progress.clear();
    for (auto& writer : writers) {
      writer->finish();
      writer.reset();
    }
    size_t at = 0;
    for (const fs::path& file : reader_.files()) {
      if (stamp_of(file) != stamps_[at++])
        throw DataError("{} was changed while it was read; start again when it is whole", file.string());
    }
    write_sealed(writing / kCorpusNote, nlohmann::json{{"notes", notes}}.dump() + "\n");
    fs::rename(writing, entry);
  } catch (const std::system_error& error) {
    remove_tree(writing);
    throw CacheUnavailable(error.code().message());
  } catch (...) {
    remove_tree(writing);
    throw;
  }
  note_soundness(entry);
  return {fmt::format("tokens kept in {} for the other workers and later runs, made in {:.1f} s",
                      entry.string(), watch.seconds())};
}

}  // namespace syncopate::data
