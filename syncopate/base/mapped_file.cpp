#include "syncopate/base/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/standard_error.h"

namespace syncopate {
namespace {

std::atomic<void (*)(const std::string& sentence)> end_of_cut_short = nullptr;

/// The files that are mapped, for a signal's handler, which can take no lock: `begin` is set last and taken
/// back first.
struct Mapping {
  std::atomic<const char*> begin = nullptr;  ///< null: a free entry
  std::atomic<size_t> size = 0;
  std::atomic<const std::string*> sentence = nullptr;
};
std::array<Mapping, 256> mappings;  // files beyond that end in a plain SIGBUS
std::mutex mappings_mutex;          // of who adds and removes
bool handles_bus_errors = false;
struct sigaction handled_before {};

const Mapping* mapping_at(const char* address) {
  for (const Mapping& mapping : mappings) {
    const char* const begin = mapping.begin;
    if (begin != nullptr && address >= begin && address < begin + mapping.size) return &mapping;
  }
  return nullptr;
}

void on_bus_error(int number, siginfo_t* about, void*) {
  const Mapping* const mapping = mapping_at(static_cast<const char*>(about->si_addr));
  if (mapping == nullptr) {  // not ours
    ::sigaction(number, &handled_before, nullptr);
    ::raise(number);
    return;
  }
  const std::string& sentence = *mapping->sentence.load();
  if (const auto end = end_of_cut_short.load()) end(sentence);
  write_stderr(sentence + "\n");
  ::_exit(static_cast<int>(ExitCode::kData));
}

void note_mapping(const char* begin, size_t size, const std::string& sentence) {
  const std::lock_guard lock(mappings_mutex);
  if (!handles_bus_errors) {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    handles_bus_errors = ::sigaction(SIGBUS, &action, &handled_before) == 0;
  }
  for (Mapping& mapping : mappings) {
    if (mapping.begin != nullptr) continue;
    mapping.size = size;
    mapping.sentence = &sentence;
    mapping.begin = begin;
    return;
  }
}

void forget_mapping(const char* begin) {
  const std::lock_guard lock(mappings_mutex);
  for (Mapping& mapping : mappings) {
    if (mapping.begin == begin) mapping.begin = nullptr;
  }
}

}  // namespace

void when_cut_short(void (*end)(const std::string& sentence)) { end_of_cut_short = end; }

MappedFile::MappedFile(const std::filesystem::path& path, std::string_view what)
    : path_(path),
      file_(open_to_read(path, what)),
      status_(status_of_plain(file_, path, what)),
      size_(static_cast<size_t>(status_.st_size)),
      cut_short_(
          fmt::format("{} was cut short while it was read; start again when it is whole", path.string())) {
  if (size_ == 0) return;
  void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_.get(), 0);
  if (memory == MAP_FAILED)
    throw DataError("cannot map the {} {}: {}", what, path.string(), std::strerror(errno));
  data_ = static_cast<const char*>(memory);
  note_mapping(data_, size_, cut_short_);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget_mapping(data_);
  ::munmap(const_cast<char*>(data_), size_);
}

void MappedFile::let_go() const noexcept {
  if (data_ != nullptr) ::madvise(const_cast<char*>(data_), size_, MADV_DONTNEED);
}

void MappedFile::require_unchanged() const {
  struct stat now {};
  const bool same = ::fstat(file_.get(), &now) == 0 && now.st_size == status_.st_size &&
                    now.st_mtim.tv_sec == status_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == status_.st_mtim.tv_nsec;
  if (!same)
    throw DataError("{} was changed while it was read; start again when it is whole", path_.string());
}

}  // namespace syncopate
