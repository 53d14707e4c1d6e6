# Writes the commit that is built, "-dirty" where files were changed since; empty outside a repository. A script of its own,
# because it is asked at every build: cmake -DSOURCE=... -DHEADER=... -P commit.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "")
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#pragma once\n#define SYNCOPATE_COMMIT \"${commit}\"\n")
