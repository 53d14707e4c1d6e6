#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

namespace syncopate {

/// Exit codes by kind of failure; scripts rely on them.
enum class ExitCode : int {
  kOk = 0,
  kConfig = 2,
  kData = 3,
  kComm = 4,
  kDiverged = 5,
  kInternal = 70,
  kInterrupted = 130,
};

/// Base class of all our exceptions. `what()` is one sentence for the user: what is wrong, where, what to do.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// An invalid setting.
class ConfigError : public Error {
 public:
  template <typename... Args>
  explicit ConfigError(fmt::format_string<Args...> text, Args&&... args)
      : Error(ExitCode::kConfig, fmt::format(text, std::forward<Args>(args)...)) {}
};

/// Bad or missing data: names the file, the line or offset, what was expected and what to try.
class DataError : public Error {
 public:
  template <typename... Args>
  explicit DataError(fmt::format_string<Args...> text, Args&&... args)
      : Error(ExitCode::kData, fmt::format(text, std::forward<Args>(args)...)) {}
};

/// A peer died, an operation ran past its deadline, or a connection was refused.
class CommError : public Error {
 public:
  template <typename... Args>
  explicit CommError(fmt::format_string<Args...> text, Args&&... args)
      : Error(ExitCode::kComm, fmt::format(text, std::forward<Args>(args)...)) {}
};

/// The loss is no longer a number.
class DivergedError : public Error {
 public:
  template <typename... Args>
  explicit DivergedError(fmt::format_string<Args...> text, Args&&... args)
      : Error(ExitCode::kDiverged, fmt::format(text, std::forward<Args>(args)...)) {}
};

/// A bug in Syncopate.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& text,
                         std::source_location where = std::source_location::current())
      : Error(ExitCode::kInternal, fmt::format("internal error at {}:{}: {}; please report it",
                                               where.file_name(), where.line(), text)) {}
};

/// Throws InternalError unless `holds`: for conditions that only a bug can violate.
inline void check(bool holds, const char* text,
                  std::source_location where = std::source_location::current()) {
  if (!holds) throw InternalError(text, where);
}

}  // namespace syncopate
