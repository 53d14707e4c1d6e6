# Everything that is not ours. Debian 12's packages are the default; -DCMAKE_PREFIX_PATH points at another libtorch.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
include(libtorch)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

add_library(syncopate_torch INTERFACE)
target_include_directories(syncopate_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(syncopate_torch INTERFACE ${TORCH_LIBRARIES} Threads::Threads)
# PyPI's libtorch contains Gloo but neither ships its headers nor says so; Debian's libgloo-dev headers serve.
target_compile_definitions(syncopate_torch INTERFACE USE_C10D_GLOO USE_DISTRIBUTED)

find_path(GLOO_INCLUDE gloo/algorithm.h HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)
find_path(UTF8PROC_INCLUDE utf8proc.h HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)
find_path(ZLIB_INCLUDE zlib.h HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)
find_library(ZLIB_LIBRARY NAMES z libz.so.1 HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)
find_path(CRYPTO_INCLUDE openssl/hmac.h HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)
find_library(CRYPTO_LIBRARY NAMES crypto libcrypto.so.3 HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)

# One file calls libtorch's threads (tensor/parallel.cpp); the library that libtorch itself has loaded.
find_package(OpenMP REQUIRED COMPONENTS CXX)

# Optional: the backend mpi. C's functions alone are called.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI COMPONENTS CXX QUIET)
if(MPI_CXX_FOUND)
  list(FILTER MPI_CXX_LIBRARIES EXCLUDE REGEX "libmpi_cxx")  # C++'s, which nobody calls
  message(STATUS "MPI ${MPI_CXX_VERSION}: the backend mpi is built in")
else()
  message(STATUS "MPI not found: no backend mpi")
endif()

# The server of `watch`. The definitions are those that Debian compiled the library with.
find_path(HTTPLIB_INCLUDE httplib.h HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)
find_library(HTTPLIB_LIBRARY NAMES cpp-httplib libcpp-httplib.so.0.11 HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)
add_library(syncopate_http INTERFACE)
target_compile_definitions(syncopate_http INTERFACE CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT
                                                    CPPHTTPLIB_BROTLI_SUPPORT)
target_link_libraries(syncopate_http INTERFACE ${HTTPLIB_LIBRARY})
if(NOT HTTPLIB_INCLUDE STREQUAL "/usr/include")
  target_include_directories(syncopate_http SYSTEM INTERFACE $<BUILD_INTERFACE:${HTTPLIB_INCLUDE}>)
endif()

# The workbook of a report.
find_path(XLSXWRITER_INCLUDE xlsxwriter.h HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)
find_library(XLSXWRITER_LIBRARY NAMES xlsxwriter libxlsxwriter.so.4 HINTS ${SYNCOPATE_EXTRA_INCLUDE} REQUIRED)

# PyPI's libtorch brings newer fmt headers, found before the system's: then use those alone, without libfmt.
set(SYNCOPATE_FMT fmt::fmt)
foreach(dir ${TORCH_INCLUDE_DIRS})
  if(EXISTS ${dir}/fmt/core.h AND NOT dir STREQUAL "/usr/include")
    set(SYNCOPATE_FMT fmt::fmt-header-only)
  endif()
endforeach()

add_library(syncopate_small INTERFACE)
target_link_libraries(syncopate_small INTERFACE ${SYNCOPATE_FMT} nlohmann_json::nlohmann_json ${UTF8PROC_LIBRARY}
                                                 ${ZLIB_LIBRARY} ${CRYPTO_LIBRARY})
foreach(dir ${GLOO_INCLUDE} ${TOMLPLUSPLUS_INCLUDE} ${UTF8PROC_INCLUDE} ${ZLIB_INCLUDE} ${CRYPTO_INCLUDE})
  if(NOT dir STREQUAL "/usr/include")
    target_include_directories(syncopate_small SYSTEM INTERFACE $<BUILD_INTERFACE:${dir}>)
  endif()
endforeach()
