#include "syncopate/comm/operations/completion.h"

#include <utility>

namespace syncopate::comm {
namespace {

thread_local std::optional<Moment> noted;

}  // namespace

void note_end(Moment ended) { noted = ended; }
std::optional<Moment> take_end() { return std::exchange(noted, std::nullopt); }

}  // namespace syncopate::comm
