#include "syncopate/parallel/averagers/low_rank.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/codec/kernels/kernels.h"
#include "syncopate/parallel/averagers/orthonormal.h"

namespace syncopate::parallel {
namespace {

constexpr uint64_t kKey = 0x10c0;

bool finite(const at::Tensor& numbers) {
  return codec::kernels::kernels().finite(numbers.data_ptr<float>(), numbers.numel());
}

}  // namespace

/// One piece on its way. `first_` holds what is summed as it is, then every P'; `second_` every Q'.
class LowRank::Exchange : public TwoRounds::Exchange {
 public:
  Exchange(LowRank& owner, Piece piece) : owner_(owner), piece_(std::move(piece)) {
    const at::Tensor flat = piece_.tensor.view({-1});
    host_ = flat.is_cpu() && flat.scalar_type() == at::kFloat ? flat : flat.to(at::kCPU, at::kFloat);
    plan();
    if (owner_.options_.error_feedback && finite(host_)) {
      rest_ = owner_.rest_.take(piece_);
      host_.add_(rest_);
    }
    first_ = at::empty({plain_size_ + thin_size(&Low::rows)});
    for_each_plain([](const at::Tensor& mine, const at::Tensor& sent) { sent.copy_(mine); });
    int64_t at = plain_size_;
    for (Low& low : lows_) {
      low.p = take_matrix(first_, at, low.rank, low.rows);
      const at::Tensor q = low.matrix->q.clone();
      orthonormalize(q, mix_key(kKey, low.matrix->offset));
      at::mm_out(low.p, q, matrix_of(host_, low).t());
    }
    pending_ = owner_.group_.all_reduce(first_, comm::Op::kSum);
  }

  void turn() override {
    pending_.wait();
    // Alike on all ranks. What is kept then stays as it was, since nothing of this step will be used.
    sound_ = finite(first_);
    second_ = at::empty({thin_size(&Low::columns)});
    int64_t at = 0;
    for (Low& low : lows_) {
      if (sound_) orthonormalize(low.p);
      low.q = take_matrix(second_, at, low.rank, low.columns);
      const at::Tensor matrix = matrix_of(host_, low);
      at::mm_out(low.q, low.p, matrix);
      if (rest_.defined() && sound_) matrix.addmm_(low.p.t(), low.q, 1, -1);
    }
    if (rest_.defined() && sound_) {
      for_each_plain([](const at::Tensor& mine, const at::Tensor&) { mine.zero_(); });
      rest_.copy_(host_);
      owner_.rest_.put(piece_, rest_);
    }
    pending_ = owner_.group_.all_reduce(second_, comm::Op::kSum);
  }

  void finish() override {
    pending_.wait();
    for_each_plain([](const at::Tensor& mine, const at::Tensor& sent) { mine.copy_(sent); });
    for (Low& low : lows_) {
      at::Tensor matrix = matrix_of(host_, low);
      at::mm_out(matrix, low.p.t(), low.q);
      if (sound_ && finite(second_)) low.matrix->q.copy_(low.q);
    }
    if (host_.data_ptr() != piece_.tensor.data_ptr()) piece_.tensor.view({-1}).copy_(host_);
  }

 private:
  /// A matrix of this piece that is compressed.
  struct Low {
    Matrix* matrix;
    int64_t begin, rows, columns, rank;  ///< `begin` in the piece
    at::Tensor p{}, q{};                 ///< [rank, rows], [rank, columns]
  };

  /// Finds the matrices that lie whole in the piece and for which it pays.
  void plan() {
    int64_t covered = 0;
    for (Matrix& matrix : owner_.matrices_) {
      const int64_t begin = matrix.offset - piece_.offset;
      if (piece_.rows.defined() && begin != 0) continue;
      const int64_t rows = piece_.rows.defined() ? piece_.rows.numel() : matrix.rows;
      const int64_t size = rows * matrix.columns, rank = matrix.q.size(0);
      if (begin < 0 || begin + size > host_.numel() || size == 0) continue;
      const double thin = owner_.options_.min_rate * static_cast<double>((rows + matrix.columns) * rank);
      if (thin >= static_cast<double>(size)) continue;
      if (covered < begin) plain_.emplace_back(covered, begin);
      covered = begin + size;
      lows_.push_back({&matrix, begin, rows, matrix.columns, rank});
    }
    if (covered < host_.numel()) plain_.emplace_back(covered, host_.numel());
    for (const auto& [begin, end] : plain_) plain_size_ += end - begin;
  }

  int64_t thin_size(int64_t Low::*length) const {
    int64_t size = 0;
    for (const Low& low : lows_) size += low.rank * low.*length;
    return size;
  }

  /// The next [rows, columns] of a flat buffer.
  static at::Tensor take_matrix(const at::Tensor& flat, int64_t& at, int64_t rows, int64_t columns) {
    at += rows * columns;
    return flat.narrow(0, at - rows * columns, rows * columns).view({rows, columns});
  }

  static at::Tensor matrix_of(const at::Tensor& flat, const Low& low) {
    return flat.narrow(0, low.begin, low.rows * low.columns).view({low.rows, low.columns});
  }

  template <typename Use>
  void for_each_plain(const Use& use) {
    int64_t at = 0;
    for (const auto& [begin, end] : plain_) {
      use(host_.narrow(0, begin, end - begin), first_.narrow(0, at, end - begin));
      at += end - begin;
    }
  }

  LowRank& owner_;
  Piece piece_;
  at::Tensor host_, rest_, first_, second_;
  std::vector<Low> lows_;
  std::vector<std::pair<int64_t, int64_t>> plain_;  ///< from, to: of the piece, summed as they are
  int64_t plain_size_ = 0;
  bool sound_ = true;
  comm::Pending pending_;
};

LowRank::LowRank(comm::Group& group, Options options) : group_(group), options_(options) {
  if (options_.rank < 1) throw ConfigError("rank must be 1 or more, got {}", options_.rank);
}

void LowRank::attach(const Replica& replica) {
  matrices_.clear();
  int64_t largest = 0;
  for (const auto& entry : replica.params.entries()) {
    if (entry.parameter.dim() < 2 || entry.size == 0) continue;
    const int64_t rows = entry.parameter.size(0), columns = entry.size / rows;
    const int64_t full = std::min(rows, columns);
    largest = std::max(largest, full);
    // Zeros: whoever uses them first takes random directions instead.
    matrices_.push_back({entry.name, entry.offset, rows, columns,
                         at::zeros({std::min(options_.rank, full), columns}, at::kFloat)});
  }
  if (options_.rank > largest) {
    throw ConfigError("the rank {} is above that of every matrix of the model; {} is the largest of use",
                      options_.rank, largest);
  }
  if (options_.error_feedback) rest_.attach(replica, "power-sgd.rest", options_.scaled);
}

void LowRank::begin(int64_t step) {
  step_ = step;
  rest_.begin();
}

comm::Pending LowRank::start(Piece piece) {
  if (group_.size() == 1) return {};
  if (step_ < options_.warmup) return group_.all_reduce(piece.tensor, comm::Op::kSum);
  return rounds_.add(std::make_shared<Exchange>(*this, std::move(piece)));
}

std::vector<StateTensor> LowRank::state() {
  std::vector<StateTensor> state;
  if (options_.error_feedback) state = rest_.state();
  for (const Matrix& matrix : matrices_) {
    state.push_back({.name = "power-sgd.q." + matrix.name,
                     .tensor = matrix.q,
                     .scope = Scope::kCommon,
                     .when_resized = "the factors of power-sgd were kept"});
  }
  return state;
}

}  // namespace syncopate::parallel
