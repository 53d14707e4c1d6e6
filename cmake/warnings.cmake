option(SYNCOPATE_WERROR "Treat warnings as errors" ON)
add_library(syncopate_warnings INTERFACE)
target_compile_options(syncopate_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                                    $<$<BOOL:${SYNCOPATE_WERROR}>:-Werror>)
