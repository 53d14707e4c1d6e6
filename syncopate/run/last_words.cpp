#include "syncopate/run/last_words.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <typeinfo>

#include "syncopate/base/error.h"
#include "syncopate/base/mapped_file.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"

namespace syncopate::run {
namespace {

std::mutex mutex;
LastWords::Say last_say;  ///< guarded by `mutex`

LastWord word_of_current_exception() {
  const auto unexpected = [](const std::string& whole) {
    return LastWord{.sentence = fmt::format("unexpected failure: {}; please report it", first_line(whole)),
                    .whole = whole};
  };
  try {
    if (std::current_exception()) throw;
    return unexpected("the program was terminated");
  } catch (const Error& error) {
    return {.sentence = error.what(), .whole = error.what(), .exit_code = static_cast<int>(error.code())};
  } catch (const std::exception& error) {
    // Gloo throws in threads of its own when a peer sends what nobody expects, or goes.
    if (std::string(typeid(error).name()).find("4gloo") == std::string::npos) return unexpected(error.what());
    return {.sentence = fmt::format("the connection to another rank broke: {}", first_line(error.what())),
            .whole = error.what(),
            .exit_code = static_cast<int>(ExitCode::kComm)};
  } catch (...) {
    return unexpected("an exception of an unknown kind");
  }
}

[[noreturn]] void end_with(const LastWord& word) {
  LastWords::Say say;
  {
    const std::lock_guard lock(mutex);
    say = std::move(last_say);
    last_say = nullptr;
  }
  std::atomic<bool> done = !say, told = false;
  if (say) {
    std::thread([&] {
      try {
        told = say(word);
      } catch (...) {  // nothing is left to be done about it
      }
      done = true;
    }).detach();
  }
  for (int i = 0; i < 200 && !done; ++i) ::usleep(10000);
  if (!told) tell("syncopate: {}", word.sentence);
  ::_exit(word.exit_code);
}

[[noreturn]] void terminate() { end_with(word_of_current_exception()); }

void end_of_cut_short(const std::string& sentence) {
  end_with({.sentence = sentence, .whole = sentence, .exit_code = static_cast<int>(ExitCode::kData)});
}

}  // namespace

void speak_before_terminating() {
  std::set_terminate(terminate);
  when_cut_short(end_of_cut_short);
}

LastWords::LastWords(Say say) {
  const std::lock_guard lock(mutex);
  last_say = std::move(say);
}

LastWords::~LastWords() {
  const std::lock_guard lock(mutex);
  last_say = nullptr;
}

}  // namespace syncopate::run
