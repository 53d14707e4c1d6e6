#include "syncopate/data/token_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "syncopate/base/error.h"

namespace syncopate::data {
namespace {

constexpr uint64_t kTokenFormat = 0x316E656B6F546E79;  // "ynToken1"; reads otherwise in another byte order
constexpr int64_t kFirstPage = 4096;
constexpr size_t kWrite = size_t{1} << 20;

template <typename Plain>
std::string_view bytes_of(const Plain* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(Plain)};
}

uint64_t own_checksum(const TokenFile::Header& header) {
  return checksum({reinterpret_cast<const char*>(&header), offsetof(TokenFile::Header, own)});
}

template <typename Failure>
[[noreturn]] void fail_by_errno() {
  throw Failure(errno, std::generic_category());
}

}  // namespace

size_t width_of_pieces(int64_t vocabulary) {
  const bool narrow = vocabulary <= int64_t{std::numeric_limits<uint16_t>::max()} + 1;
  return narrow ? sizeof(uint16_t) : sizeof(int32_t);
}

double expected_bytes(double letters, int64_t vocabulary) {
  return letters / 4 * static_cast<double>(width_of_pieces(vocabulary));
}

TokenFileWriter::TokenFileWriter(const std::filesystem::path& path, int64_t vocabulary)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)),
      width_(width_of_pieces(vocabulary)),
      end_(kFirstPage) {
  if (fd_ < 0) fail_by_errno<CannotWrite>();
}

TokenFileWriter::~TokenFileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void TokenFileWriter::write(off_t at, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t wrote = ::pwrite(fd_, bytes, size, at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail_by_errno<CannotWrite>();
    bytes += wrote;
    at += wrote;
    size -= static_cast<size_t>(wrote);
  }
}

void TokenFileWriter::flush() {
  content_.add({buffer_.data(), buffer_.size()});
  write(end_, buffer_.data(), buffer_.size());
  end_ += static_cast<off_t>(buffer_.size());
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
  std::vector<char> page(static_cast<size_t>(kFirstPage), '\0');
  std::memcpy(page.data(), &header, sizeof header);
  write(0, page.data(), page.size());
  if (::close(std::exchange(fd_, -1)) != 0) fail_by_errno<CannotWrite>();  // a server of files says so now
}

TokenFile::TokenFile(std::filesystem::path path, int fd, const Header& header)
    : path_(std::move(path)), fd_(fd), header_(header) {}

TokenFile::~TokenFile() { ::close(fd_); }

std::shared_ptr<const TokenFile> TokenFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return nullptr;
  if (fd < 0) fail_by_errno<std::system_error>();
  const auto file = std::make_shared<TokenFile>(path, fd, Header{});
  Header& header = file->header_;
  const ssize_t got = ::pread(fd, &header, sizeof header, 0);
  if (got < 0) fail_by_errno<std::system_error>();
  const bool known = got == static_cast<ssize_t>(sizeof header) && header.format == kTokenFormat &&
                     header.own == own_checksum(header) &&
                     (header.width == sizeof(uint16_t) || header.width == sizeof(int32_t)) &&
                     header.count >= 0;
  const bool whole = known && ::lseek(fd, 0, SEEK_END) == kFirstPage + header.count * header.width;
  return whole ? file : nullptr;
}

bool TokenFile::sound() const {
  constexpr int64_t kPortion = int64_t{1} << 22;
  std::vector<char> portion(static_cast<size_t>(kPortion));
  Checksum sum;
  const int64_t all = header_.count * header_.width;
  for (int64_t from = 0; from < all; from += kPortion) {
    const auto size = static_cast<size_t>(std::min(kPortion, all - from));
    if (!read_bytes(from, portion.data(), size)) return false;
    sum.add({portion.data(), size});
  }
  return sum.value() == header_.content;
}

bool TokenFile::read_bytes(int64_t from, char* into, size_t size) const {
  off_t at = kFirstPage + from;
  while (size > 0) {
    const ssize_t got = ::pread(fd_, into, size, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_by_errno<std::system_error>();
    if (got == 0) return false;
    into += got;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

void TokenFile::read(int64_t begin, std::span<int32_t> into) const {
  check(begin >= 0 && begin + static_cast<int64_t>(into.size()) <= size(), "pieces are within their stream");
  const size_t bytes = into.size() * static_cast<size_t>(header_.width);
  char* const narrow = reinterpret_cast<char*>(into.data()) + (into.size_bytes() - bytes);
  std::string failure;
  try {
    if (!read_bytes(begin * header_.width, narrow, bytes)) failure = "it has become shorter";
  } catch (const std::system_error& error) {
    failure = error.code().message();
  }
  if (!failure.empty()) {
    throw DataError("{} cannot be read any more ({}); delete the folder {} and start the run again",
                    path_.string(), failure, path_.parent_path().string());
  }
  if (header_.width == sizeof(int32_t)) return;
  for (size_t i = 0; i < into.size(); ++i) {  // behind what is written, until the last one is
    uint16_t piece = 0;
    std::memcpy(&piece, narrow + i * sizeof piece, sizeof piece);
    into[i] = piece;
  }
}

uint64_t TokenFile::fingerprint(int64_t count) const {
  const int64_t dropped = size() - count;
  check(count >= 0 && dropped >= 0 && dropped <= kMostDropped, "few pieces are left out");
  return header_.prefixes[dropped];
}

}  // namespace syncopate::data
