option(SYNCOPATE_WERROR "Treat warnings as errors" ON)
add_library(syncopate_warnings INTERFACE)
target_compile_options(syncopate_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                                    # g++ 12 takes an empty std::optional for an uninitialised string
                                                    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                                                    $<$<BOOL:${SYNCOPATE_WERROR}>:-Werror>)
