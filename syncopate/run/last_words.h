#pragma once

#include <functional>
#include <string>

namespace syncopate::run {

/// From here on an exception that nobody catches, whatever the thread (a library's own among them), ends the
/// process with one sentence on standard error and the exit code of its kind.
void speak_before_terminating();

/// What is done with the sentence in place of that, while one lives: a worker tells the others.
class LastWords {
 public:
  using Say = std::function<void(const std::string& sentence, int exit_code)>;
  explicit LastWords(Say say);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
};

/// The first line of what an exception says: libraries put a stack trace behind it.
std::string first_line(const std::string& text);

}  // namespace syncopate::run
