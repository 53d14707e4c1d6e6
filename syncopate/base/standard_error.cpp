#include "syncopate/base/standard_error.h"

#include <cstdio>

namespace syncopate {

void write_stderr(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace syncopate
