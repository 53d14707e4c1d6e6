# Writes the commit that is built, "-dirty" where files were changed since; empty outside a repository, and for a release
# unpacked inside another one. A script of its own, because it is asked at every build:
# cmake -DSOURCE=... -DHEADER=... -P commit.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel
                OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
get_filename_component(source "${SOURCE}" REALPATH)
if(top)
  get_filename_component(top "${top}" REALPATH)
endif()
if(failed OR NOT top STREQUAL source)
  set(commit "")
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#pragma once\n#define SYNCOPATE_COMMIT \"${commit}\"\n")
