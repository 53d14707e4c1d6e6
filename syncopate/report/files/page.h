#pragma once

#include <string>
#include <string_view>

namespace syncopate::report {

/// The page (web/) with these results inside: one HTML file that needs nothing else. `results` is JSON
/// (docs/formats/results.md); nothing in it can become markup.
std::string page(std::string_view results);

/// The page without results: it shows those that arrive as server-sent events from `events`, an address
/// relative to its own.
std::string live_page(std::string_view events);

}  // namespace syncopate::report
