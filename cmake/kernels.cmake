# The kernels of nn, one source compiled for each instruction set; the program picks one when it runs. They see
# no torch header and none of the program's own -m flags, and nothing else is compiled with theirs.
set(SYNCOPATE_KERNEL_SETS baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND SYNCOPATE_KERNEL_SETS avx2 avx512)
  set(flags_avx2 -mavx2 -mfma)
  set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mprefer-vector-width=512)
  target_compile_definitions(room_nn PRIVATE SYNCOPATE_X86_KERNELS)
endif()

foreach(isa ${SYNCOPATE_KERNEL_SETS})
  add_library(kernels_${isa} OBJECT ${CMAKE_SOURCE_DIR}/syncopate/nn/kernels/kernels.cpp)
  target_link_libraries(kernels_${isa} PRIVATE room_settings)
  target_compile_definitions(kernels_${isa} PRIVATE SYNCOPATE_ISA=${isa})
  # Contraction to fused multiply-add is meant. Vectors by value never cross a call, hence no-psabi.
  target_compile_options(kernels_${isa} PRIVATE ${flags_${isa}} -O3 -ffp-contract=fast -fno-math-errno
                                                -fno-trapping-math -Wno-psabi)
  list(APPEND SYNCOPATE_OBJECTS $<TARGET_OBJECTS:kernels_${isa}>)
endforeach()
