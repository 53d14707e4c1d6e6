#include "syncopate/base/version.h"

#include "syncopate/commit.h"
#include "syncopate/version.h"

namespace syncopate {

std::string program_version() { return SYNCOPATE_VERSION; }
std::string program_commit() { return SYNCOPATE_COMMIT; }

}  // namespace syncopate
