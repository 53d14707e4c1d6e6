#pragma once

#include <cstdint>
#include <functional>

namespace syncopate::tensor {

/// Calls work(from, to) for parts of begin..end-1 of at least `grain` elements, by as many threads as
/// libtorch was told to use. at::parallel_for is a template that runs on one thread where its caller is
/// compiled without OpenMP; behind this function it is not.
void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  const std::function<void(int64_t from, int64_t to)>& work);

}  // namespace syncopate::tensor
