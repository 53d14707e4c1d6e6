#pragma once

#include "syncopate/nn/kernels/lanes.h"

namespace syncopate::nn::kernels::SYNCOPATE_ISA {

template <bool kResidual>
static void drop_rows(const DropJob& job, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const RowNoise noise(job.noise, row);
    const int64_t at = row * job.width;
    along(job.width, [&](int64_t c, auto lanes) {
      Floats x = lanes.load(job.in + at + c) * noise.factors(c);
      if constexpr (kResidual) x += lanes.load(job.residual + at + c);
      lanes.store(job.out + at + c, x);
    });
  }
}

static void drop(const DropJob& job, int64_t first, int64_t last) {
  (job.residual != nullptr ? drop_rows<true> : drop_rows<false>)(job, first, last);
}

}  // namespace syncopate::nn::kernels::SYNCOPATE_ISA
