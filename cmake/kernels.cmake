# The kernels of nn and codec, one source compiled for each instruction set; the program picks one when it runs.
# They see no torch header and none of the program's own -m flags, and nothing else is compiled with theirs.
set(SYNCOPATE_KERNEL_SETS baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND SYNCOPATE_KERNEL_SETS avx2 avx512)
  set(flags_avx2 -mavx2 -mfma -mf16c)
  set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)
  target_compile_definitions(room_nn PRIVATE SYNCOPATE_X86_KERNELS)
  target_compile_definitions(room_codec PRIVATE SYNCOPATE_X86_KERNELS)
endif()

foreach(isa ${SYNCOPATE_KERNEL_SETS})
  foreach(room nn codec)
    add_library(kernels_${room}_${isa} OBJECT ${CMAKE_SOURCE_DIR}/syncopate/${room}/kernels/kernels.cpp)
    target_link_libraries(kernels_${room}_${isa} PRIVATE room_settings)
    target_compile_definitions(kernels_${room}_${isa} PRIVATE SYNCOPATE_ISA=${isa})
    # Vectors by value never cross a call, hence no-psabi.
    target_compile_options(kernels_${room}_${isa} PRIVATE ${flags_${isa}} -O3 -fno-math-errno -fno-trapping-math
                                                          -Wno-psabi)
    list(APPEND SYNCOPATE_OBJECTS $<TARGET_OBJECTS:kernels_${room}_${isa}>)
  endforeach()
  # In nn, contraction to fused multiply-add is meant. A codec gives the same bits with every instruction set.
  target_compile_options(kernels_nn_${isa} PRIVATE -ffp-contract=fast)
  target_compile_options(kernels_codec_${isa} PRIVATE -ffp-contract=off)
endforeach()
