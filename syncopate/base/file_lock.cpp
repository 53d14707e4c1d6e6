#include "syncopate/base/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "syncopate/base/clock.h"

namespace syncopate {

FileLock::FileLock(const std::filesystem::path& path, const std::function<void()>& waits) {
  constexpr std::chrono::milliseconds kPause(20);
  constexpr double kAMoment = 2;  // seconds
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category());
  const Stopwatch watch;
  bool told = false;
  for (;;) {
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (::fcntl(fd_, F_OFD_SETLK, &whole) == 0) return;
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
      const int code = errno;
      ::close(fd_);
      throw std::system_error(code, std::generic_category());
    }
    if (!told && watch.seconds() > kAMoment) {
      told = true;
      if (waits) waits();
    }
    std::this_thread::sleep_for(kPause);
  }
}

FileLock::~FileLock() { ::close(fd_); }

}  // namespace syncopate
