#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace syncopate {

/// Whether bytes are gzip's, by the first two of them.
bool is_gzip(std::string_view bytes);

/// The whole file as bytes, decompressed where it is gzip's by its first two bytes, whatever it is called.
/// Throws DataError when it cannot be read or is damaged; `what` names it for the user ("table").
std::string read_plain_or_gzip(const std::filesystem::path& path, std::string_view what);

}  // namespace syncopate
