#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace syncopate::plan {

/// "1 stage", "2 stages", "3 micro-batches".
inline std::string plural(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with("ch") ? "es" : "s");
}

}  // namespace syncopate::plan
