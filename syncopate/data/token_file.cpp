#include "syncopate/data/token_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

#include "syncopate/base/error.h"

namespace syncopate::data {
namespace {

constexpr uint64_t kTokenFormat = 0x316E656B6F546E79;  // "ynToken1"; reads otherwise in another byte order
constexpr size_t kFirstPage = 4096;
constexpr size_t kWrite = size_t{1} << 20;

template <typename Plain>
std::string_view bytes_of(const Plain* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(Plain)};
}

uint64_t own_checksum(const TokenFile::Header& header) {
  return checksum({reinterpret_cast<const char*>(&header), offsetof(TokenFile::Header, own)});
}

[[noreturn]] void fail_by_errno() { throw std::system_error(errno, std::generic_category()); }

}  // namespace

TokenFileWriter::TokenFileWriter(const std::filesystem::path& path, int64_t vocabulary)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)),
      width_(vocabulary <= int64_t{std::numeric_limits<uint16_t>::max()} + 1 ? sizeof(uint16_t)
                                                                             : sizeof(int32_t)) {
  if (fd_ < 0) fail_by_errno();
  if (::lseek(fd_, kFirstPage, SEEK_SET) < 0) {
    ::close(fd_);
    fail_by_errno();
  }
}

TokenFileWriter::~TokenFileWriter() { ::close(fd_); }

void TokenFileWriter::write(const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t wrote = ::write(fd_, bytes, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail_by_errno();
    bytes += wrote;
    size -= static_cast<size_t>(wrote);
  }
}

void TokenFileWriter::flush() {
  content_.add({buffer_.data(), buffer_.size()});
  write(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void TokenFileWriter::append(std::span<const int32_t> pieces) {
  const size_t before = buffer_.size();
  buffer_.resize(before + pieces.size() * width_);
  if (width_ == sizeof(uint16_t)) {
    char* into = buffer_.data() + before;
    for (const int32_t piece : pieces) {
      const auto narrow = static_cast<uint16_t>(piece);
      check(narrow == piece, "pieces are numbers of the vocabulary");
      std::memcpy(into, &narrow, sizeof narrow);
      into += sizeof narrow;
    }
  } else {
    std::memcpy(buffer_.data() + before, pieces.data(), pieces.size_bytes());
  }
  count_ += static_cast<int64_t>(pieces.size());
  last_.insert(last_.end(), pieces.begin(), pieces.end());
  if (last_.size() > static_cast<size_t>(Tokens::kMostDropped)) {
    const size_t settled = last_.size() - static_cast<size_t>(Tokens::kMostDropped);
    numbers_.add(bytes_of(last_.data(), settled));
    last_.erase(last_.begin(), last_.begin() + static_cast<std::ptrdiff_t>(settled));
  }
  if (buffer_.size() >= kWrite) flush();
}

void TokenFileWriter::finish() {
  flush();
  TokenFile::Header header{};
  header.format = kTokenFormat;
  header.width = static_cast<int64_t>(width_);
  header.count = count_;
  header.content = content_.value();
  for (size_t kept = 0; kept <= last_.size(); ++kept) {
    header.prefixes[last_.size() - kept] = numbers_.value();
    if (kept < last_.size()) numbers_.add(bytes_of(&last_[kept], 1));
  }
  header.own = own_checksum(header);
  std::vector<char> page(kFirstPage, '\0');
  std::memcpy(page.data(), &header, sizeof header);
  if (::lseek(fd_, 0, SEEK_SET) < 0) fail_by_errno();
  write(page.data(), page.size());
}

TokenFile::TokenFile(const std::filesystem::path& path, const Header& header)
    : file_(path, "token cache"), header_(header) {}

std::shared_ptr<const TokenFile> TokenFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  Header header{};
  const bool read = ::pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
  ::close(fd);
  const bool known = read && header.format == kTokenFormat && header.own == own_checksum(header) &&
                     (header.width == sizeof(uint16_t) || header.width == sizeof(int32_t)) &&
                     header.count >= 0;
  if (!known) return nullptr;
  auto file = std::make_shared<const TokenFile>(path, header);
  const uint64_t size =
      kFirstPage + static_cast<uint64_t>(header.count) * static_cast<uint64_t>(header.width);
  return file->file_.bytes().size() == size ? file : nullptr;
}

bool TokenFile::sound() const {
  constexpr size_t kPortion = size_t{1} << 24;  // bytes in our memory at a time
  Checksum sum;
  std::string_view rest = file_.bytes().substr(kFirstPage);
  while (!rest.empty()) {
    sum.add(rest.substr(0, kPortion));
    rest.remove_prefix(std::min(kPortion, rest.size()));
    file_.let_go();
  }
  return sum.value() == header_.content;
}

void TokenFile::read(int64_t begin, std::span<int32_t> into) const {
  check(begin >= 0 && begin + static_cast<int64_t>(into.size()) <= size(), "pieces are within their stream");
  // The system maps 64 KiB around what is touched: 64 MiB at most.
  constexpr uint32_t kReadsBetween = 1024;
  if (reads_.fetch_add(1, std::memory_order_relaxed) % kReadsBetween == kReadsBetween - 1) file_.let_go();
  const char* from = file_.bytes().data() + kFirstPage + begin * header_.width;
  if (header_.width == sizeof(int32_t)) {
    std::memcpy(into.data(), from, into.size_bytes());
    return;
  }
  const auto* narrow = reinterpret_cast<const uint16_t*>(from);  // at an even place of a page
  std::copy_n(narrow, into.size(), into.begin());
}

uint64_t TokenFile::fingerprint(int64_t count) const {
  const int64_t dropped = size() - count;
  check(count >= 0 && dropped >= 0 && dropped <= kMostDropped, "few pieces are left out");
  return header_.prefixes[dropped];
}

}  // namespace syncopate::data
