#pragma once

#include "syncopate/nn/kernels/half_product.h"

// Attention one head at a time, in blocks of queries whose scores stay in the cache.
namespace syncopate::nn::kernels::SYNCOPATE_ISA {

static constexpr int64_t kQueryBlock = 64;

/// Keys or values transposed, and two blocks of scores.
SYNCOPATE_INLINE int64_t whole_scratch(const AttentionJob& job) {
  return job.length * job.head_width + 2 * kQueryBlock * job.length;
}

/// And what products in bf16 need.
static int64_t attention_scratch(const AttentionJob& job) {
  if (!job.half) return whole_scratch(job);
  const int64_t L = job.length, d = job.head_width;
  const int64_t sizes[] = {half_room(kQueryBlock, L, d), half_room(kQueryBlock, d, L),
                           half_room(L, d, kQueryBlock)};
  int64_t most = 0;
  for (const int64_t size : sizes) most = size > most ? size : most;
  return whole_scratch(job) + 16 + most / 2;
}

/// The products of one head: in bf16 where that is asked for and there is enough to multiply.
class Products {
 public:
  Products(const AttentionJob& job, int64_t queries, float* scratch) {
    if (!job.half || queries < kBlock) return;
    const uint64_t end = reinterpret_cast<uint64_t>(scratch + whole_scratch(job));
    room_ = reinterpret_cast<uint16_t*>((end + 63) / 64 * 64);
  }

  bool half() const { return room_ != nullptr; }
  void operator()(const Product& product) const {
    if (half()) {
      multiply_in_half(product, room_);
    } else {
      multiply(product);
    }
  }

 private:
  uint16_t* room_ = nullptr;
};

/// The transpose of rows that lie `row` apart: a copy in `turned`, unless products take it as it is.
struct Turned {
  const float* data;
  int64_t row, column;
};

SYNCOPATE_INLINE Turned turn_rows(const Products& products, const float* rows, int64_t row, int64_t count,
                                  int64_t width, float* turned) {
  if (products.half()) return {rows, 1, row};
  transpose(rows, row, count, width, turned);
  return {turned, count, 1};
}

/// Where one head's rows begin, and how many there are.
struct Head {
  const float *q, *k, *v, *mask;
  int64_t q_at, kv_at, context_at;  ///< offsets, for the gradients too
  int64_t probs_at;
  int64_t noise_row, number;  ///< the first query's row of the noise, and which of the heads this is
  int64_t queries, length;
};

SYNCOPATE_INLINE Head head_of(const AttentionJob& job, int64_t number) {
  const int64_t example = number / job.heads, head = number % job.heads;
  int64_t queries = job.queries, length = job.length;
  int64_t position = example * length, query = example * queries, area = query * length;
  if (job.starts != nullptr) {
    const bool all = queries == length;
    position = job.starts[example];
    length = job.starts[example + 1] - position;
    queries = all ? length : 1;
    query = all ? position : example;
    area = job.areas[example];
  }
  const int64_t q_at = query * job.q_stride + head * job.head_width;
  const int64_t kv_at = position * job.kv_stride + head * job.head_width;
  return {job.q + q_at,
          job.k + kv_at,
          job.v + kv_at,
          job.mask == nullptr ? nullptr : job.mask + position,
          q_at,
          kv_at,
          (query * job.heads + head) * job.head_width,
          area * job.heads + head * queries * length,
          query,
          head,
          queries,
          length};
}

/// How many positions a block of queries that ends before `end` sees: when causal, none after its last query.
SYNCOPATE_INLINE int64_t seen_by(const AttentionJob& job, const Head& head, int64_t end) {
  return job.causal && end < head.length ? end : head.length;
}

/// The first `seen` scores -> probabilities (kept in `probs`) -> after noise (left in `scores`).
template <bool kNoise>
static void softmax_row(const AttentionJob& job, const Head& head, int64_t query, int64_t seen, float* scores,
                        float* probs) {
  const float* mask = head.mask;
  Floats most = splat(-__FLT_MAX__);
  along(seen, [&](int64_t c, auto lanes) {
    Floats s = lanes.load(scores + c) * job.scale;
    if (mask != nullptr) s += lanes.load(mask + c);
    lanes.store(scores + c, s);
    if constexpr (requires { lanes.count; }) {
      for (int64_t i = lanes.count; i < kLanes; ++i) s[i] = -__FLT_MAX__;
    }
    most = larger(most, s);
  });
  const float peak = largest_of(most);
  Floats sum{};
  along(seen, [&](int64_t c, auto lanes) {
    const Floats e = exp_of(lanes.load(scores + c) - peak);
    lanes.store(scores + c, e);
    sum += lanes.only(e);
  });
  const float inverse = 1.0f / sum_of(sum);
  const RowNoise noise(job.noise, head.noise_row + query, head.number);
  along(seen, [&](int64_t c, auto lanes) {
    const Floats p = lanes.load(scores + c) * inverse;
    if (probs != nullptr) lanes.store(probs + c, p);
    lanes.store(scores + c, kNoise ? p * noise.factors(c) : p);
  });
}

static void attention(const AttentionJob& job, int64_t first, int64_t last, float* scratch) {
  const int64_t d = job.head_width;
  const auto softmax = job.noise.drop_below > 0 ? softmax_row<true> : softmax_row<false>;
  for (int64_t number = first; number < last; ++number) {
    const Head head = head_of(job, number);
    const int64_t L = head.length;
    float* scores = scratch + L * d;
    const Products products(job, head.queries, scratch);
    const Turned keys = turn_rows(products, head.k, job.kv_stride, L, d, scratch);
    for (int64_t start = 0; start < head.queries; start += kQueryBlock) {
      const int64_t rows = head.queries - start < kQueryBlock ? head.queries - start : kQueryBlock;
      const int64_t seen = seen_by(job, head, start + rows);
      products({rows, seen, d, head.q + start * job.q_stride, job.q_stride, 1, keys.data, keys.row, scores, L,
                false, keys.column});
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t query = start + i, own = seen_by(job, head, query + 1);
        float* probs = job.probs == nullptr ? nullptr : job.probs + head.probs_at + query * L;
        softmax(job, head, query, own, scores + i * L, probs);
        for (int64_t c = own; c < seen; ++c) {
          scores[i * L + c] = 0;
          if (probs != nullptr) probs[c] = 0;
        }
      }
      const int64_t out_row = job.heads * d;
      float* out = job.context + head.context_at + start * out_row;
      products({rows, d, seen, scores, L, 1, head.v, job.kv_stride, out, out_row, false});
    }
  }
}

/// In `grads`: the gradient of the probabilities after noise -> of the scores. In `dropped`: the
/// probabilities after noise.
template <bool kNoise>
static void softmax_grad_row(const AttentionJob& job, const Head& head, int64_t query, int64_t seen,
                             const float* probs, float* grads, float* dropped) {
  const RowNoise noise(job.noise, head.noise_row + query, head.number);
  Floats dot{};
  along(seen, [&](int64_t c, auto lanes) {
    const Floats p = lanes.load(probs + c);
    Floats g = lanes.load(grads + c);
    if constexpr (kNoise) {
      const Floats factors = noise.factors(c);
      g *= factors;
      lanes.store(grads + c, g);
      lanes.store(dropped + c, p * factors);
    }
    dot += p * g;
  });
  const float total = sum_of(dot);
  along(seen, [&](int64_t c, auto lanes) {
    lanes.store(grads + c, (lanes.load(grads + c) - total) * lanes.load(probs + c) * job.scale);
  });
}

static void attention_grad(const AttentionJob& job, int64_t first, int64_t last, float* scratch) {
  const int64_t d = job.head_width, out_row = job.heads * d;
  const bool noise = job.noise.drop_below > 0;
  const auto softmax_grad = noise ? softmax_grad_row<true> : softmax_grad_row<false>;
  for (int64_t number = first; number < last; ++number) {
    const Head head = head_of(job, number);
    const int64_t L = head.length;
    float* grads = scratch + L * d;
    float* dropped = grads + kQueryBlock * L;
    const Products products(job, head.queries, scratch);
    const Turned values = turn_rows(products, head.v, job.kv_stride, L, d, scratch);
    // When causal the last block comes first: it alone sees every position, so that the others only add.
    const int64_t blocks = (head.queries + kQueryBlock - 1) / kQueryBlock;
    for (int64_t turn = 0; turn < blocks; ++turn) {
      const int64_t start = (job.causal ? blocks - 1 - turn : turn) * kQueryBlock;
      const int64_t rows = head.queries - start < kQueryBlock ? head.queries - start : kQueryBlock;
      const int64_t seen = seen_by(job, head, start + rows);
      const float* grad_out = job.grad_context + head.context_at + start * out_row;
      const float* probs = job.probs + head.probs_at + start * L;
      products(
          {rows, seen, d, grad_out, out_row, 1, values.data, values.row, grads, L, false, values.column});
      for (int64_t i = 0; i < rows; ++i) {
        softmax_grad(job, head, start + i, seen, probs + i * L, grads + i * L, dropped + i * L);
      }
      const float* after_noise = noise ? dropped : probs;
      const bool more = turn > 0;
      products({seen, d, rows, after_noise, 1, L, grad_out, out_row, job.grad_v + head.kv_at, job.kv_stride,
                more});
      products({rows, d, seen, grads, L, 1, head.k, job.kv_stride,
                job.grad_q + head.q_at + start * job.q_stride, job.q_stride, false});
      products({seen, d, rows, grads, 1, L, head.q + start * job.q_stride, job.q_stride,
                job.grad_k + head.kv_at, job.kv_stride, more});
    }
  }
}

}  // namespace syncopate::nn::kernels::SYNCOPATE_ISA
