#include "syncopate/run/fault_injection.h"

#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

namespace syncopate::run {

void inject(const spec::Fault& fault, int64_t step, const std::string& phase) {
  if (step < fault.step || phase != fault.phase) return;
  // Nobody is killed in the microsecond in which a phase begins: let the word of it get out.
  ::usleep(100000);
  using Kind = spec::Fault::Kind;
  if (fault.kind == Kind::kKill) ::raise(SIGKILL);
  if (fault.kind == Kind::kStop) ::raise(SIGSTOP);
  if (fault.kind == Kind::kThrow) {
    std::thread([] { throw std::runtime_error("made on purpose\n  with a trace behind it"); }).join();
  }
  if (fault.kind == Kind::kLeave) throw LeavesOnPurpose();
  while (fault.kind == Kind::kHang) ::pause();
}

}  // namespace syncopate::run
