#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/interrupt.h"
#include "syncopate/report/analyse.h"
#include "syncopate/report/files/page.h"
#include "syncopate/watch/page_server.h"

namespace syncopate::cli {
namespace {

using std::chrono::duration;
using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void sleep_until(Clock::time_point then) {
  // Short naps: Ctrl-C is heeded soon.
  while (!interrupted() && Clock::now() < then) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

int watch(const std::filesystem::path& folder, int port) {
  if (!std::filesystem::is_directory(folder))
    throw DataError("{} is not a folder; give that of a run or of an experiment", folder.string());
  report::Reader reader(folder);
  watch::PageServer server(report::live_page("events"), port);
  catch_interrupts();
  fmt::print("{}\n", server.address());
  std::fflush(stdout);
  tell("watching {}; open the address above in a browser, Ctrl-C ends", folder.string());
  bool begun = false;
  double paid = cpu_seconds();  // starting, and the first reading, are nobody's loss
  Clock::time_point since = Clock::now();
  while (!interrupted()) {
    if (!begun || server.watchers() > 0) {
      try {
        if (reader.refresh()) server.publish(report::json_text(reader.results()));
        if (!begun) {
          paid = cpu_seconds();
          since = Clock::now();
        }
        begun = true;
      } catch (const DataError& error) {
        if (begun) throw;  // else nothing is there yet: whoever watches came first
      }
    }
    // Reading and sending are paid by those who train: less than one per cent of one core. What is left of
    // that and a little in advance let it read every second.
    constexpr double kShare = 0.009, kAdvance = 0.5, kShortest = 1;
    const auto after = [](Clock::time_point from, double seconds) {
      return from + std::chrono::duration_cast<Clock::duration>(duration<double>(seconds));
    };
    sleep_until(
        std::max(after(Clock::now(), kShortest), after(since, (cpu_seconds() - paid - kAdvance) / kShare)));
  }
  return 0;
}

}  // namespace

Command add_watch(Program& program) {
  struct Arguments {
    std::string folder;
    int port = 0;
  };
  CLI::App* app = program.app.add_subcommand(
      "watch", "Show a run or an experiment on a page in the browser while it goes on");
  auto arguments = std::make_shared<Arguments>();
  app->add_option("folder", arguments->folder, "a run's folder, or an experiment's")
      ->required()
      ->type_name("FOLDER");
  app->add_option("--port", arguments->port, "of this machine (default: any that is free)")
      ->check(CLI::Range(0, 65535))
      ->type_name("INT");
  program.notes[app] = {
      "The page is served on 127.0.0.1 alone. From another machine: ssh -L 8000:127.0.0.1:8000 HOST, and "
      "--port 8000 there. After the first reading it takes less than one per cent of one core: ten thousand "
      "runs are read again after minutes."};
  program.examples[app] = {"syncopate watch runs/quickstart"};
  return [arguments] { return watch(arguments->folder, arguments->port); };
}

}  // namespace syncopate::cli
