#include "syncopate/run/launch.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <system_error>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/process.h"
#include "syncopate/base/text.h"
#include "syncopate/lifeline/proof.h"
#include "syncopate/lifeline/server.h"
#include "syncopate/lifeline/socket.h"
#include "syncopate/run/world.h"

namespace syncopate::run {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook(20);
/// Workers learn of a failure at once and have a watchdog of about a second; whoever is still there then is
/// stuck.
constexpr milliseconds kGracePeriod(1700);
/// The server hears of a death about when waitpid does.
constexpr milliseconds kReportGrace(500);
/// How long a worker has to stand still before anybody is told. After Ctrl-Z all stand still, but not as long
/// once they are continued.
constexpr milliseconds kStandstill(1000);

/// How often each signal has come; a handler can only reach what is static.
std::atomic<int> interrupts{0}, terminations{0}, hangups{0}, stops{0};
void count_signal(int number) {
  ++(number == SIGINT ? interrupts : number == SIGTERM ? terminations : number == SIGHUP ? hangups : stops);
}

/// SIGINT, SIGTERM, SIGHUP (unless it is ignored: nohup) and the terminal's Ctrl-Z are counted while one
/// lives.
class SignalCount {
 public:
  SignalCount() {
    interrupts = terminations = hangups = stops = 0;
    struct sigaction action {};
    action.sa_handler = count_signal;
    ::sigemptyset(&action.sa_mask);
    for (size_t k = 0; k < kCounted.size(); ++k) ::sigaction(kCounted[k], &action, &old_[k]);
    if (old_[kHangup].sa_handler == SIG_IGN) ::sigaction(SIGHUP, &old_[kHangup], nullptr);
  }
  ~SignalCount() {
    for (size_t k = 0; k < kCounted.size(); ++k) ::sigaction(kCounted[k], &old_[k], nullptr);
  }
  SignalCount(const SignalCount&) = delete;
  SignalCount& operator=(const SignalCount&) = delete;
  /// A closed terminal asks once; it does not insist.
  int count() const {
    return interrupts + terminations + (interrupts + terminations == 0 && hangups > 0 ? 1 : 0);
  }
  int last() const { return interrupts > 0 ? SIGINT : SIGTERM; }
  bool take_stop() const { return stops.exchange(0) > 0; }

 private:
  static constexpr std::array<int, 4> kCounted = {SIGINT, SIGTERM, SIGTSTP, SIGHUP};
  static constexpr size_t kHangup = 3;
  std::array<struct sigaction, 4> old_{};
};

std::filesystem::path log_of(const LaunchOptions& options, int rank) {
  return options.log_folder / fmt::format("rank{}.log", rank);
}

std::string address_of_server(const LaunchOptions& options) {
  return options.lab ? options.lab->address(options.seats.at(0)) : "127.0.0.1";
}

/// The workers of one run, from the first spawn to the last waitpid.
class Crew {
 public:
  Crew(const LaunchOptions& options, lifeline::LifelineServer& server, const std::string& key)
      : options_(options), server_(server) {
    try {
      for (int rank = 0; rank < options.workers; ++rank) start(rank, key);
    } catch (...) {
      kill_all();
      throw;
    }
  }
  ~Crew() { kill_all(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  bool running() const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const Process& worker) { return !worker.status(); });
  }

  void look() {
    for (Process& worker : workers_) worker.look();
  }

  void signal_all(int number) {
    for (const Process& worker : workers_) worker.signal(number);
  }

  void kill_all() {
    signal_all(SIGKILL);
    for (Process& worker : workers_) worker.wait();
  }

  bool ended_by(int signal) const {
    return std::any_of(workers_.begin(), workers_.end(), [signal](const Process& worker) {
      return worker.status() && WIFSIGNALED(*worker.status()) && WTERMSIG(*worker.status()) == signal;
    });
  }

  /// Workers that have been standing still for a while, each once: what the user is told.
  std::vector<std::string> newly_stopped() {
    std::vector<std::string> notes;
    for (size_t rank = 0; rank < workers_.size(); ++rank) {
      Standstill& still = still_[rank];
      if (!workers_[rank].stopped()) {
        still = {};
        continue;
      }
      if (!still.since) still.since = Clock::now();
      if (still.told || Clock::now() - *still.since < kStandstill) continue;
      still.told = true;
      notes.push_back(fmt::format(
          "rank {0} (process {1}) was stopped by a signal during {2}: who needs it gives up after {3:g} s; "
          "kill -CONT {1} continues it",
          rank, workers_[rank].pid(), server_.status_of(static_cast<int>(rank)).text(),
          std::chrono::duration<double>(options_.timeout).count()));
    }
    return notes;
  }

  /// A worker that ended as it should not have and of which the server knows nothing more.
  std::optional<int> bad_end() const {
    for (size_t rank = 0; rank < workers_.size(); ++rank) {
      const std::optional<int>& status = workers_[rank].status();
      if (!status) continue;
      if (WIFSIGNALED(*status)) return static_cast<int>(rank);
      const int code = WEXITSTATUS(*status);
      const bool in_order = server_.left(static_cast<int>(rank)) || options_.workers == 1;
      if (code != 0 && !(in_order && code == static_cast<int>(ExitCode::kInterrupted)))
        return static_cast<int>(rank);
    }
    return std::nullopt;
  }

  std::optional<int> status(int rank) const { return workers_.at(static_cast<size_t>(rank)).status(); }

  int worst_code() const {
    int worst = 0;
    for (const Process& worker : workers_) {
      const std::optional<int>& status = worker.status();
      if (status && WIFEXITED(*status)) worst = std::max(worst, WEXITSTATUS(*status));
    }
    return worst;
  }

 private:
  void start(int rank, const std::string& key) {
    Environment variables = environment_of_process();
    for (const auto& [name, value] : options_.environment) variables[name] = value;
    variables["SYNCOPATE_RANK"] = std::to_string(rank);
    variables["SYNCOPATE_WORLD_SIZE"] = std::to_string(options_.workers);
    variables["SYNCOPATE_MASTER"] = lifeline::Address{address_of_server(options_), server_.port()}.text();
    sit_down(rank, variables);
    variables["SYNCOPATE_TOKEN"] = key;
    variables["SYNCOPATE_LAUNCHER_PID"] = std::to_string(::getpid());
    ProcessOptions worker;
    worker.program = options_.program;
    worker.argv = options_.argv;
    worker.environment = std::move(variables);
    worker.reads_nothing = true;
    if (rank > 0 && !options_.log_folder.empty()) worker.log = log_of(options_, rank);
    worker.own_group = true;  // the terminal's Ctrl-C reaches the launcher alone
    worker.default_signals = {SIGINT, SIGTERM, SIGTSTP, SIGPIPE};
    worker.blocks_no_signals = true;
    try {
      workers_.emplace_back(worker);
    } catch (const std::system_error& error) {
      throw CommError("cannot start worker {}: {}", rank, error.code().message());
    }
  }

  /// Takes this thread, and so the worker that it starts next, to the worker's host.
  void sit_down(int rank, Environment& variables) {
    if (!options_.lab) return;
    const std::vector<int>& seats = options_.seats;
    const int host = seats.at(static_cast<size_t>(rank));
    variables["SYNCOPATE_LAB_HOST"] = std::to_string(host);
    variables["SYNCOPATE_LOCAL_RANK"] = std::to_string(std::count(seats.begin(), seats.begin() + rank, host));
    variables["SYNCOPATE_LOCAL_WORLD_SIZE"] = std::to_string(std::count(seats.begin(), seats.end(), host));
    options_.lab->enter(host);
  }

  const LaunchOptions& options_;
  lifeline::LifelineServer& server_;
  std::vector<Process> workers_;  ///< by rank
  struct Standstill {
    std::optional<Clock::time_point> since{};
    bool told = false;
  };
  std::vector<Standstill> still_ =
      std::vector<Standstill>(static_cast<size_t>(options_.workers));  ///< by rank
};

std::string log_hint(const LaunchOptions& options, int rank) {
  if (rank == 0 || options.log_folder.empty()) return "";
  return fmt::format("; {} says more", log_of(options, rank).string());
}

/// What became of a rank, from its end and from what it was last known to do.
LaunchResult verdict(const LaunchOptions& options, int rank, int status, const std::string& activity) {
  LaunchResult result;
  result.rank = rank;
  result.names_log = !log_hint(options, rank).empty();
  if (WIFSIGNALED(status)) {
    result.exit_code = static_cast<int>(ExitCode::kComm);
    result.sentence = fmt::format("rank {} was killed by signal {} ({}) during {}{}", rank, WTERMSIG(status),
                                  ::strsignal(WTERMSIG(status)), activity, log_hint(options, rank));
  } else if (const int code = WEXITSTATUS(status); code != 0) {
    result.exit_code = code;
    result.sentence = fmt::format("rank {} stopped with exit code {} during {}{}", rank, code, activity,
                                  log_hint(options, rank));
  } else {
    result.exit_code = static_cast<int>(ExitCode::kComm);
    result.sentence = fmt::format("rank {} left during {} before the run was done{}", rank, activity,
                                  log_hint(options, rank));
  }
  return result;
}

/// Names the first cause and ends whoever is left.
LaunchResult end_after_failure(const LaunchOptions& options, Crew& crew, lifeline::LifelineServer& server) {
  const Clock::time_point start = Clock::now();
  std::optional<lifeline::Failure> first = server.failure();
  while (!first && Clock::now() - start < kReportGrace) {
    std::this_thread::sleep_for(milliseconds(5));
    first = server.failure();
  }
  LaunchResult result;
  if (!first) {  // it never came to the server, or had left it
    crew.look();
    const int rank = crew.bad_end().value_or(0);
    result = verdict(options, rank, crew.status(rank).value_or(0), server.status_of(rank).text());
    lifeline::Failure failure = lifeline::died(rank, server.status_of(rank));
    failure.sentence = result.sentence;
    server.declare(failure);
  } else {
    result.rank = first->rank;
    result.exit_code = first->exit_code;
    result.sentence = first->sentence;
  }
  while (crew.running() && Clock::now() - start < kGracePeriod) {
    std::this_thread::sleep_for(kLook);
    crew.look();
  }
  const std::optional<int> own_end = first && first->rank >= 0 ? crew.status(first->rank) : std::nullopt;
  crew.kill_all();
  if (first && first->cause == lifeline::Cause::kDied && own_end) {
    result = verdict(options, first->rank, *own_end, first->activity);
  }
  return result;
}

LaunchResult watch(const LaunchOptions& options, Crew& crew, lifeline::LifelineServer& server,
                   const SignalCount& signals) {
  int passed_on = 0;
  constexpr int kLooksBetween = 15;
  for (int looks = 1;; ++looks) {
    crew.look();
    if (options.note && looks % kLooksBetween == 0) {
      for (const std::string& text : crew.newly_stopped()) options.note(text);
    }
    if (passed_on > 0 && crew.ended_by(signals.last())) {  // one that had not got to catching signals yet
      crew.kill_all();
      return {.exit_code = static_cast<int>(ExitCode::kInterrupted)};
    }
    if (server.failure() || crew.bad_end()) return end_after_failure(options, crew, server);
    if (!crew.running()) return {.exit_code = crew.worst_code()};
    if (signals.count() > passed_on) {
      if (passed_on > 0 || signals.count() > 1) {
        crew.kill_all();
        return {.exit_code = static_cast<int>(ExitCode::kInterrupted)};
      }
      crew.signal_all(signals.last());
      passed_on = 1;
    }
    if (signals.take_stop()) {  // Ctrl-Z reaches the launcher alone: all stand still together
      crew.signal_all(SIGSTOP);
      ::raise(SIGSTOP);
      crew.signal_all(SIGCONT);
    }
    ::poll(nullptr, 0, static_cast<int>(kLook.count()));  // a signal cuts it short
  }
}

}  // namespace

LaunchResult launch(const LaunchOptions& options) {
  if (options.workers < 1) throw ConfigError("--workers must be 1 or more, got {}", options.workers);
  if (!options.log_folder.empty()) make_folder(options.log_folder);
  lifeline::LifelineServerOptions where;
  where.size = options.workers;
  where.timeout = options.timeout;
  where.key = lifeline::random_key();
  where.host = address_of_server(options);
  if (options.lab) options.lab->enter(options.seats.at(0));
  lifeline::LifelineServer server(where);
  const SignalCount signals;
  Crew crew(options, server, where.key);
  LaunchResult result = watch(options, crew, server, signals);
  server.close();
  return result;
}

std::vector<std::string> words_of(char** argv) {
  std::vector<std::string> words;
  for (char** word = argv; *word != nullptr; ++word) words.emplace_back(*word);
  return words;
}

void die_with_parent() {
  const char* text = ::getenv("SYNCOPATE_LAUNCHER_PID");
  const auto launcher = text == nullptr ? std::nullopt : parse_integer(text);
  if (!launcher) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have died before the kernel was told.
  if (::getppid() != *launcher) ::raise(SIGKILL);
}

void be_the_parent() { ::setenv("SYNCOPATE_LAUNCHER_PID", std::to_string(::getpid()).c_str(), 1); }

}  // namespace syncopate::run
