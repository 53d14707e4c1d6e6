# For those who change the sources. Another compiler, or another libtorch's headers, may warn about something new: that must
# not keep anybody from building a release.
option(SYNCOPATE_WERROR "Treat warnings as errors" OFF)
add_library(syncopate_warnings INTERFACE)
target_compile_options(syncopate_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                                    # g++ 12 takes an empty std::optional for an uninitialised string
                                                    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                                                    $<$<BOOL:${SYNCOPATE_WERROR}>:-Werror>)
