#include "syncopate/run/last_words.h"

#include <unistd.h>

#include <exception>
#include <mutex>
#include <typeinfo>

#include "syncopate/base/error.h"
#include "syncopate/base/standard_error.h"

namespace syncopate::run {
namespace {

std::mutex mutex;
LastWords::Say chosen;  ///< guarded by `mutex`

struct Words {
  std::string sentence;
  ExitCode code = ExitCode::kInternal;
};

Words words_of_current_exception() {
  try {
    if (std::current_exception()) throw;
    return {"unexpected failure: the program was terminated; please report it"};
  } catch (const Error& error) {
    return {error.what(), error.code()};
  } catch (const std::exception& error) {
    // Gloo throws in threads of its own when a peer sends what nobody expects, or goes.
    const bool connection = std::string(typeid(error).name()).find("4gloo") != std::string::npos;
    return {connection ? fmt::format("the connection to another rank broke: {}", first_line(error.what()))
                       : fmt::format("unexpected failure: {}; please report it", first_line(error.what())),
            connection ? ExitCode::kComm : ExitCode::kInternal};
  } catch (...) {
    return {"unexpected failure of an unknown kind; please report it"};
  }
}

[[noreturn]] void terminate() {
  const Words words = words_of_current_exception();
  LastWords::Say say;
  {
    const std::lock_guard lock(mutex);
    say = std::move(chosen);
    chosen = nullptr;
  }
  try {
    if (say) {
      say(words.sentence, static_cast<int>(words.code));
    } else {
      tell("syncopate: {}", words.sentence);
    }
  } catch (...) {  // nothing is left to be done about it
  }
  ::_exit(static_cast<int>(words.code));
}

}  // namespace

void speak_before_terminating() { std::set_terminate(terminate); }

LastWords::LastWords(Say say) {
  const std::lock_guard lock(mutex);
  chosen = std::move(say);
}

LastWords::~LastWords() {
  const std::lock_guard lock(mutex);
  chosen = nullptr;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace syncopate::run
