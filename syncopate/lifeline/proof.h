#pragma once

#include <string>
#include <string_view>

namespace syncopate::lifeline {

/// 128 random bits in hexadecimal.
std::string random_key();

/// Shows that the caller knows `key` without telling it: HMAC-SHA256 of `what`, in hexadecimal. Both sides
/// put a random number of the other's into `what`, so that nothing overheard can be used again.
std::string prove(std::string_view key, std::string_view what);

/// Whether a proof is the expected one; takes as long whichever byte differs.
bool proves(std::string_view shown, std::string_view expected);

}  // namespace syncopate::lifeline
