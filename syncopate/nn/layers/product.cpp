#include "syncopate/nn/layers/product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/nn/kernels/kernels.h"
#include "syncopate/tensor/parallel.h"

namespace syncopate::nn {
namespace {

using kernels::kHalfBlock;
using tensor::Precision;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool by_tiles(const at::Tensor& a, const at::Tensor& b, Precision precision) {
  if (precision != Precision::kBf16 || !a.is_cpu()) return false;
  if (a.scalar_type() != at::kFloat || b.scalar_type() != at::kFloat) return false;
  // To pack a side that few rows or columns of the other meet takes longer than to multiply it.
  return std::min({a.size(0), a.size(1), b.size(1)}) >= kHalfBlock;
}

/// Of a [rows, depth].
kernels::HalfSide side_of(const at::Tensor& matrix) {
  kernels::HalfSide side;
  side.data = matrix.data_ptr<float>();
  side.count = matrix.size(0);
  side.depth = matrix.size(1);
  side.step = matrix.stride(0);
  side.depth_step = matrix.stride(1);
  return side;
}

at::Tensor with_unit_stride(const at::Tensor& matrix) {
  return matrix.stride(0) == 1 || matrix.stride(1) == 1 ? matrix : matrix.contiguous();
}

int64_t in_blocks(int64_t count) { return (count + kHalfBlock - 1) / kHalfBlock; }

/// How the result is cut, in blocks: into enough pieces for all threads, of rows that stay in a core's cache
/// when packed.
struct Pieces {
  int64_t rows, columns;  ///< of a piece
  int64_t down, across;   ///< how many there are

  explicit Pieces(const kernels::HalfProductJob& job) {
    constexpr int64_t kPacked = int64_t{512} << 10, kMostRows = 8;
    const int64_t threads = at::get_num_threads();
    const int64_t fit = kPacked / (job.a.depth * kHalfBlock * static_cast<int64_t>(sizeof(uint16_t)));
    const int64_t all_rows = in_blocks(job.a.count), all_columns = in_blocks(job.b.count);
    rows = std::clamp<int64_t>(std::min(fit, (all_rows + threads - 1) / threads), 1, kMostRows);
    down = (all_rows + rows - 1) / rows;
    const int64_t wanted = std::min(all_columns, (threads + down - 1) / down);
    columns = (all_columns + wanted - 1) / wanted;
    across = (all_columns + columns - 1) / columns;
  }
};

/// The sums over elements first..last-1 of the depth, added to those before.
kernels::HalfProductJob part_of(kernels::HalfProductJob job, int64_t first, int64_t last) {
  for (kernels::HalfSide* side : {&job.a, &job.b}) {
    side->data += first * side->depth_step;
    side->depth = last - first;
  }
  if (first > 0) {
    job.start = job.c;
    job.start_row = job.c_row;
  }
  return job;
}

void multiply_part(kernels::HalfProductJob job) {
  const kernels::Kernels& chosen = kernels::kernels();
  const auto room = [](int64_t elements) { return at::empty({elements}, at::kShort); };
  const auto memory_of = [](const at::Tensor& room_for) {
    return reinterpret_cast<uint16_t*>(room_for.data_ptr<int16_t>());
  };
  const int64_t M = job.a.count, N = job.b.count;
  const at::Tensor packed = room(chosen.half_size(N, job.b.depth));
  job.packed_b = memory_of(packed);
  tensor::parallel_for(0, in_blocks(N), 1, [&](int64_t first, int64_t last) {
    chosen.half_pack(job.b, first * kHalfBlock, std::min(N, last * kHalfBlock), memory_of(packed));
  });
  const Pieces pieces(job);
  const int64_t rows = pieces.rows * kHalfBlock, columns = pieces.columns * kHalfBlock;
  tensor::parallel_for(0, pieces.down * pieces.across, 1, [&](int64_t first, int64_t last) {
    const at::Tensor scratch = room(chosen.half_size(rows, job.a.depth));
    for (int64_t piece = first; piece < last; ++piece) {
      const int64_t row = piece / pieces.across * rows, column = piece % pieces.across * columns;
      chosen.half_multiply(job, row, std::min(M, row + rows), column, std::min(N, column + columns),
                           memory_of(scratch));
    }
  });
}

void multiply(const kernels::HalfProductJob& job) {
  constexpr int64_t kDeepest = 4096;  // of more, not even one block's rows would stay in the cache
  for (int64_t first = 0; first < job.a.depth; first += kDeepest)
    multiply_part(part_of(job, first, std::min(job.a.depth, first + kDeepest)));
}

/// c = start + a b, where `start` is undefined, a bias [N] or c.
void multiply_into(const at::Tensor& c, const at::Tensor& start, const at::Tensor& a, const at::Tensor& b) {
  check(a.size(1) == b.size(0) && c.size(0) == a.size(0) && c.size(1) == b.size(1), "matrices that fit");
  check(c.stride(1) == 1, "the rows of a product are contiguous");
  const at::Tensor left = with_unit_stride(a), right = with_unit_stride(b);
  kernels::HalfProductJob job;
  job.a = side_of(left);
  job.b = side_of(right.t());
  job.c = c.data_ptr<float>();
  job.c_row = c.stride(0);
  if (start.defined()) {
    job.start = start.data_ptr<float>();
    job.start_row = start.dim() == 1 ? 0 : start.stride(0);
  }
  multiply(job);
}

/// Inside of it libtorch casts nothing on this thread's own account.
struct NoCasts {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::DispatchKeySet(c10::DispatchKey::AutocastCPU)};
};

/// [N, O] from x [N, I] and a weight [I, O], which may be a transposed view.
struct HalfLinear : torch::autograd::Function<HalfLinear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_NI, const at::Tensor& weight_IO,
                            const at::Tensor& bias_O) {
    ctx->save_for_backward({x_NI, weight_IO});
    return product(bias_O, x_NI, weight_IO, Precision::kBf16);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x_NI = saved[0], &weight_IO = saved[1];
    const at::Tensor grad_NO = grads[0].contiguous();
    // In the order in which the weight lies in memory, so that it is added to its gradient as it is.
    const bool turned = weight_IO.stride(0) == 1 && weight_IO.stride(1) != 1;
    const at::Tensor weight_grad = turned ? product(grad_NO.t(), x_NI, Precision::kBf16).t()
                                          : product(x_NI.t(), grad_NO, Precision::kBf16);
    return {product(grad_NO, weight_IO.t(), Precision::kBf16), weight_grad, grad_NO.sum(0)};
  }
};

at::Tensor half_linear(const at::Tensor& x, const at::Tensor& weight_IO, const at::Tensor& bias_O) {
  const at::Tensor x_NI = x.reshape({-1, x.size(-1)});
  const at::Tensor bias = bias_O.defined() ? bias_O : at::zeros({weight_IO.size(1)}, x.options());
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight_IO.size(1);
  return HalfLinear::apply(x_NI, weight_IO, bias).view(sizes);
}

bool in_half(const at::Tensor& x, const at::Tensor& weight) {
  return x.numel() > 0 && x.is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat &&
         tensor::cpu_precision() == Precision::kBf16;
}

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b, Precision precision) {
  const NoCasts no_casts;
  if (!by_tiles(a, b, precision)) return at::mm(a, b);
  const at::Tensor c = at::empty({a.size(0), b.size(1)}, a.options());
  multiply_into(c, {}, a, b);
  return c;
}

at::Tensor product(const at::Tensor& bias_N, const at::Tensor& a, const at::Tensor& b, Precision precision) {
  const NoCasts no_casts;
  if (!by_tiles(a, b, precision)) return at::addmm(bias_N, a, b);
  const at::Tensor c = at::empty({a.size(0), b.size(1)}, a.options());
  multiply_into(c, bias_N.contiguous(), a, b);
  return c;
}

void product_into(at::Tensor c, const at::Tensor& a, const at::Tensor& b, Precision precision) {
  const NoCasts no_casts;
  if (by_tiles(a, b, precision)) {
    multiply_into(c, {}, a, b);
  } else {
    at::mm_out(c, a, b);
  }
}

void add_product(at::Tensor c, const at::Tensor& a, const at::Tensor& b, Precision precision) {
  const NoCasts no_casts;
  if (by_tiles(a, b, precision)) {
    multiply_into(c, c, a, b);
  } else {
    c.addmm_(a, b);
  }
}

at::Tensor project(const at::Tensor& x, const at::Tensor& weight_OI, const at::Tensor& bias_O) {
  return in_half(x, weight_OI) ? half_linear(x, weight_OI.t(), bias_O) : at::linear(x, weight_OI, bias_O);
}

at::Tensor project_input_first(const at::Tensor& x, const at::Tensor& weight_IO, const at::Tensor& bias_O) {
  if (in_half(x, weight_IO)) return half_linear(x, weight_IO, bias_O);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight_IO.size(1);
  return at::addmm(bias_O, x.reshape({-1, x.size(-1)}), weight_IO).view(sizes);
}

}  // namespace syncopate::nn
