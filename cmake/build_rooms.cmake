# One object library per room, all of them joined into libsyncopate.
add_library(room_settings INTERFACE)
target_include_directories(room_settings INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_link_libraries(room_settings INTERFACE syncopate_small syncopate_warnings syncopate_sanitizers)

configure_file(${CMAKE_SOURCE_DIR}/cmake/version.h.in ${CMAKE_BINARY_DIR}/generated/syncopate/version.h @ONLY)
set(commit_header ${CMAKE_BINARY_DIR}/generated/syncopate/commit.h)
add_custom_target(syncopate_commit BYPRODUCTS ${commit_header}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DHEADER=${commit_header} -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake)

# torch's headers cost seconds to parse: every torch room reuses one precompiled header.
add_library(syncopate_pch OBJECT ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)
target_link_libraries(syncopate_pch PRIVATE room_settings syncopate_torch)
target_precompile_headers(syncopate_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)

# So do JSON's and fmt's where there is no torch.
add_library(syncopate_paper_pch OBJECT ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)
target_link_libraries(syncopate_paper_pch PRIVATE room_settings)
target_precompile_headers(syncopate_paper_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/paper_pch.h)

set(SYNCOPATE_OBJECTS "")
foreach(room ${SYNCOPATE_ROOMS})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/syncopate/${room}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/kernels/kernels\\.cpp$")  # compiled once per instruction set: kernels.cmake
  if(room STREQUAL "gpu")
    if(SYNCOPATE_CUDA)
      list(FILTER sources EXCLUDE REGEX "/gpu/without/")
      file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/syncopate/gpu/cuda/*.cu)
      add_library(gpu_kernels OBJECT ${kernels})
      target_include_directories(gpu_kernels PRIVATE ${CMAKE_SOURCE_DIR})
      set_target_properties(gpu_kernels PROPERTIES CUDA_STANDARD 17)
      target_compile_options(gpu_kernels PRIVATE --extended-lambda -O3)
      list(APPEND SYNCOPATE_OBJECTS $<TARGET_OBJECTS:gpu_kernels>)
    else()
      list(FILTER sources EXCLUDE REGEX "/gpu/cuda/")
    endif()
  endif()
  if(MPI_CXX_FOUND)
    list(FILTER sources EXCLUDE REGEX "/comm/mpi_absent\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/comm/mpi/")
  endif()
  if(SYNCOPATE_NCCL)
    list(FILTER sources EXCLUDE REGEX "/comm/nccl_absent\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/comm/nccl/")
  endif()
  if(NOT sources)
    continue()
  endif()
  add_library(room_${room} OBJECT ${sources})
  target_link_libraries(room_${room} PRIVATE room_settings)
  if(room IN_LIST SYNCOPATE_PAPER_ROOMS)
    target_precompile_headers(room_${room} REUSE_FROM syncopate_paper_pch)
  else()
    target_link_libraries(room_${room} PRIVATE syncopate_torch)
    if(NOT room STREQUAL "cli")
      target_precompile_headers(room_${room} REUSE_FROM syncopate_pch)
    endif()
  endif()
  if(room STREQUAL "cli")  # CLI11's header costs as much as torch's
    target_precompile_headers(room_cli PRIVATE <CLI/CLI.hpp> <fmt/format.h> <nlohmann/json.hpp>)
  endif()
  if(SYNCOPATE_JOIN AND room IN_LIST SYNCOPATE_JOINED_ROOMS)
    set_target_properties(room_${room} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  if(room IN_LIST SYNCOPATE_COLD_ROOMS)  # templates of CLI11 and JSON take long to optimise, and nobody waits for them
    target_compile_options(room_${room} PRIVATE ${SYNCOPATE_QUICK})
  endif()
  if(NOT room STREQUAL "cli")
    list(APPEND SYNCOPATE_OBJECTS $<TARGET_OBJECTS:room_${room}>)
  endif()
endforeach()
add_dependencies(room_base syncopate_commit)
if(SYNCOPATE_JOIN)
  # Most builds have no use for these: then at least they cost little.
  file(GLOB on_gpu CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/syncopate/nn/layers/gpu/*.cpp)
  set_source_files_properties(${on_gpu} PROPERTIES UNITY_GROUP on_gpu)
  set_target_properties(room_nn PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endif()
# The program's own; the tests of its commands leave it out.
set_source_files_properties(${CMAKE_SOURCE_DIR}/syncopate/cli/main.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
set_source_files_properties(${CMAKE_SOURCE_DIR}/syncopate/tensor/parallel.cpp PROPERTIES
  COMPILE_OPTIONS "${OpenMP_CXX_FLAGS}" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
if(SYNCOPATE_CUDA)
  target_include_directories(room_gpu SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
endif()
if(SYNCOPATE_NCCL)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/syncopate/comm/nccl/nccl.cpp PROPERTIES
    INCLUDE_DIRECTORIES "${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES};${NCCL_INCLUDE}" COMPILE_DEFINITIONS USE_C10D_NCCL)
endif()
target_link_libraries(room_watch PRIVATE syncopate_http)
if(MPI_CXX_FOUND)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/syncopate/comm/mpi/link.cpp PROPERTIES
    INCLUDE_DIRECTORIES "${MPI_CXX_INCLUDE_DIRS}" COMPILE_DEFINITIONS "OMPI_SKIP_MPICXX=1;MPICH_SKIP_MPICXX=1")
endif()
if(NOT XLSXWRITER_INCLUDE STREQUAL "/usr/include")
  target_include_directories(room_report SYSTEM PRIVATE ${XLSXWRITER_INCLUDE})
endif()
# The page is built by `make web` and committed; the program carries it.
set(page ${CMAKE_SOURCE_DIR}/web/dist/page.html)
set_source_files_properties(${CMAKE_SOURCE_DIR}/syncopate/report/files/page.cpp PROPERTIES
  COMPILE_DEFINITIONS SYNCOPATE_PAGE="${page}" OBJECT_DEPENDS ${page} SKIP_UNITY_BUILD_INCLUSION ON)

set_source_files_properties(${CMAKE_SOURCE_DIR}/syncopate/optim/kernels.cpp PROPERTIES
  COMPILE_OPTIONS "-O3;-fno-math-errno" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
include(kernels OPTIONAL)

add_library(syncopate STATIC ${SYNCOPATE_OBJECTS})
add_library(Syncopate::syncopate ALIAS syncopate)
target_compile_features(syncopate PUBLIC cxx_std_20)
target_include_directories(syncopate PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_link_libraries(syncopate PUBLIC ${SYNCOPATE_FMT} nlohmann_json::nlohmann_json Threads::Threads
                                       PRIVATE $<BUILD_INTERFACE:room_settings> $<BUILD_INTERFACE:syncopate_torch>)
target_link_libraries(syncopate INTERFACE $<BUILD_INTERFACE:syncopate_torch> $<BUILD_INTERFACE:syncopate_sanitizers>
                                          ${UTF8PROC_LIBRARY} ${ZLIB_LIBRARY} ${CRYPTO_LIBRARY} ${HTTPLIB_LIBRARY}
                                          ${XLSXWRITER_LIBRARY} ${MPI_CXX_LIBRARIES} ${OpenMP_CXX_LIBRARIES}
                                          ${CMAKE_DL_LIBS})
if(SYNCOPATE_CUDA)
  target_link_libraries(syncopate INTERFACE ${TORCH_CUDA_LIBRARIES} ${CUDART_LIBRARY} ${CMAKE_DL_LIBS} rt)
endif()
