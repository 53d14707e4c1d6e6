#pragma once

#include <functional>
#include <string>

namespace syncopate::run {

/// What an exception that nobody caught comes to, or a mapped file that was cut short.
struct LastWord {
  std::string sentence;
  std::string whole;  ///< with the stack trace behind it, if there is one
  int exit_code = 70;
};

/// From here on an exception that nobody catches, whatever the thread (a library's own among them), and a
/// mapped file that was cut short end the process with one sentence on standard error and the exit code of
/// its kind.
void speak_before_terminating();

/// What is done first, while one lives: a worker tells the others. It has two seconds, in a thread of its
/// own: the one that failed may hold any lock. Whether the user has been told by that.
class LastWords {
 public:
  using Say = std::function<bool(const LastWord& word)>;
  explicit LastWords(Say say);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
};

}  // namespace syncopate::run
