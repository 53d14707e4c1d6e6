# Finds libtorch for our build and for whoever uses the installed library: TORCH_LIBRARIES, TORCH_INCLUDE_DIRS,
# TORCH_INSTALL_PREFIX.
# TorchConfig looks for its library on the system first: a libtorch given by its CMake folder must bring its own.
set(torch_wheel "")
foreach(prefix ${CMAKE_PREFIX_PATH})
  get_filename_component(root "${prefix}/../.." ABSOLUTE)
  if(EXISTS "${prefix}/Torch/TorchConfig.cmake" AND EXISTS "${root}/lib/libtorch.so")
    list(PREPEND CMAKE_PREFIX_PATH "${root}")
    set(torch_wheel "${root}")
  endif()
endforeach()
set(TORCH_CUDA_LIBRARIES "")
if(torch_wheel AND EXISTS "${torch_wheel}/lib/libtorch_cuda.so")
  # PyPI's libtorch is built with CUDA, and its TorchConfig insists on the whole toolkit. Its headers and libraries
  # suffice, and it finds CUDA's libraries by itself when it runs.
  set(TORCH_CUDA_LIBRARIES "${torch_wheel}/lib/libtorch_cuda.so" "${torch_wheel}/lib/libc10_cuda.so")
  set(TORCH_INSTALL_PREFIX "${torch_wheel}")
  set(TORCH_INCLUDE_DIRS "${torch_wheel}/include" "${torch_wheel}/include/torch/csrc/api/include")
  set(TORCH_LIBRARIES "-Wl,--no-as-needed" "${torch_wheel}/lib/libtorch.so" "${torch_wheel}/lib/libtorch_cpu.so"
                      "${torch_wheel}/lib/libc10.so" "-Wl,--as-needed" "-Wl,--allow-shlib-undefined")
else()
  find_package(Torch REQUIRED)
  find_library(C10_CUDA_LIBRARY c10_cuda HINTS "${TORCH_INSTALL_PREFIX}/lib")
  if(C10_CUDA_LIBRARY)
    set(TORCH_CUDA_LIBRARIES ${TORCH_LIBRARIES} ${C10_CUDA_LIBRARY})
  endif()
endif()
