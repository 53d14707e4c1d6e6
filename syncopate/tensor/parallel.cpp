#include "syncopate/tensor/parallel.h"

#include <ATen/Parallel.h>

#ifndef _OPENMP
#error "cmake/build_rooms.cmake compiles this file with OpenMP: without it one thread would do all the work"
#endif

namespace syncopate::tensor {

void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  const std::function<void(int64_t from, int64_t to)>& work) {
  at::parallel_for(begin, end, grain, work);
}

}  // namespace syncopate::tensor
