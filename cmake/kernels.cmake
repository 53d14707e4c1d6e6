# The kernels of nn and codec, one source compiled for each instruction set; the program picks one when it runs.
# They see no torch header and none of the program's own -m flags, and nothing else is compiled with theirs.
set(SYNCOPATE_KERNEL_SETS baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND SYNCOPATE_KERNEL_SETS avx2 avx512)
  set(flags_avx2 -mavx2 -mfma -mf16c)
  set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)
  # Products in bf16 are nn's alone.
  set(flags_avx512_bf16 ${flags_avx512} -mavx512bf16)
  set(flags_amx ${flags_avx512_bf16} -mamx-tile -mamx-bf16)
  set(nn_sets avx512_bf16 amx)
  target_compile_definitions(room_nn PRIVATE SYNCOPATE_X86_KERNELS)
  target_compile_definitions(room_codec PRIVATE SYNCOPATE_X86_KERNELS)
endif()

function(add_kernels room isa)
  set(target kernels_${room}_${isa})
  add_library(${target} OBJECT ${CMAKE_SOURCE_DIR}/syncopate/${room}/kernels/kernels.cpp)
  target_link_libraries(${target} PRIVATE room_settings)
  target_compile_definitions(${target} PRIVATE SYNCOPATE_ISA=${isa})
  # Vectors by value never cross a call, hence no-psabi.
  target_compile_options(${target} PRIVATE ${flags_${isa}} -O3 -fno-math-errno -fno-trapping-math -Wno-psabi)
  # In nn, contraction to fused multiply-add is meant. A codec gives the same bits with every instruction set.
  target_compile_options(${target} PRIVATE -ffp-contract=$<IF:$<STREQUAL:${room},nn>,fast,off>)
  set(SYNCOPATE_OBJECTS ${SYNCOPATE_OBJECTS} $<TARGET_OBJECTS:${target}> PARENT_SCOPE)
endfunction()

foreach(isa ${SYNCOPATE_KERNEL_SETS} ${nn_sets})
  add_kernels(nn ${isa})
endforeach()
foreach(isa ${SYNCOPATE_KERNEL_SETS})
  add_kernels(codec ${isa})
endforeach()
