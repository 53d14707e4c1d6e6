#include "syncopate/report/reading/step_curve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "syncopate/base/error.h"

namespace syncopate::report {
namespace {

/// The number behind `key` ("\"loss\":"), looked for from `from` on, which moves behind it. A whole JSON
/// parser for a dozen fields that nobody asks for would take ten times as long.
bool number_behind(std::string_view line, std::string_view key, size_t& from, double& value) {
  size_t at = line.find(key, from);
  if (at == std::string_view::npos) at = line.find(key);
  if (at == std::string_view::npos) return false;
  at += key.size();
  while (at < line.size() && line[at] == ' ') ++at;
  const char* begin = line.data() + at;
  if (line.substr(at, 4) == "null") {
    value = kUnknown;
    from = at + 4;
    return true;
  }
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), value);
  from = static_cast<size_t>(end - line.data());
  return error == std::errc() && end != begin;
}

class File {
 public:
  explicit File(const std::filesystem::path& path) : handle_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (handle_ >= 0) ::close(handle_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int handle() const { return handle_; }

 private:
  int handle_;
};

}  // namespace

bool StepCurve::read(const std::filesystem::path& path) {
  const File file(path);
  struct stat about {};
  if (file.handle() < 0 || ::fstat(file.handle(), &about) != 0) return false;
  const auto size = static_cast<uint64_t>(about.st_size);
  if (about.st_ino != inode_ || size < offset_) {
    *this = StepCurve();
    inode_ = about.st_ino;
  }
  if (size <= offset_) return false;
  std::string text(size - offset_, '\0');
  size_t read = 0;
  while (read < text.size()) {
    const ssize_t got =
        ::pread(file.handle(), text.data() + read, text.size() - read, static_cast<off_t>(offset_ + read));
    if (got <= 0) break;
    read += static_cast<size_t>(got);
  }
  std::string_view rest(text.data(), read);
  const size_t before = loss_.size();
  for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    add(rest.substr(0, end), path);
    offset_ += end + 1;
    rest.remove_prefix(end + 1);
  }
  return loss_.size() > before;
}

void StepCurve::add(std::string_view line, const std::filesystem::path& file) {
  double step = 0, loss = 0, examples = 0, ms = 0, bytes = 0;
  size_t from = 0;
  if (!number_behind(line, "\"step\":", from, step) || !number_behind(line, "\"loss\":", from, loss) ||
      !number_behind(line, "\"examples\":", from, examples) || !number_behind(line, "\"ms\":", from, ms) ||
      !number_behind(line, "\"bytes_sent\":", from, bytes)) {
    throw DataError("{}:{}: not the record of a step; the file is damaged", file.string(), loss_.size() + 1);
  }
  steps_.push_back(static_cast<int64_t>(step));
  examples_.push_back(this->examples() + (std::isfinite(examples) ? examples : 0));
  seconds_.push_back(this->seconds() + (std::isfinite(ms) ? ms / 1e3 : 0));
  loss_.push_back(loss);
  bytes_.push_back(static_cast<float>(bytes));
}

size_t StepCurve::find(int64_t step) const {
  const auto found = std::upper_bound(steps_.begin(), steps_.end(), step);
  return static_cast<size_t>(found - steps_.begin());
}

double StepCurve::examples_at(int64_t step) const {
  const size_t count = find(step);
  return count == 0 ? 0 : examples_[count - 1];
}

double StepCurve::seconds_at(int64_t step) const {
  const size_t count = find(step);
  return count == 0 ? 0 : seconds_[count - 1];
}

double StepCurve::mean_loss(size_t begin, size_t end) const {
  double sum = 0, count = 0;
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(loss_[i])) continue;
    sum += loss_[i];
    ++count;
  }
  return count > 0 ? sum / count : kUnknown;
}

size_t StepCurve::tenth() const { return std::min(size(), std::max<size_t>(1, size() / 10)); }
double StepCurve::first_loss() const { return mean_loss(0, tenth()); }
double StepCurve::last_loss() const { return mean_loss(size() - tenth(), size()); }

double StepCurve::recent_ms() const {
  const size_t count = std::min<size_t>(size(), 30);
  if (count == 0) return kUnknown;
  const double before = count == size() ? 0 : seconds_[size() - count - 1];
  return (seconds_.back() - before) * 1e3 / static_cast<double>(count);
}

double StepCurve::recent_bytes() const {
  const size_t count = std::min<size_t>(size(), 30);
  double sum = 0;
  for (size_t i = size() - count; i < size(); ++i) sum += static_cast<double>(bytes_[i]);
  return count == 0 ? kUnknown : sum / static_cast<double>(count);
}

Curve StepCurve::thinned(size_t points, double scale) const {
  Curve curve;
  const size_t count = std::min(points, size());
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * size() / count, end = (i + 1) * size() / count;
    curve.examples.push_back(examples_[end - 1]);
    curve.seconds.push_back(seconds_[end - 1] * scale);
    curve.loss.push_back(mean_loss(begin, end));
  }
  return curve;
}

}  // namespace syncopate::report
