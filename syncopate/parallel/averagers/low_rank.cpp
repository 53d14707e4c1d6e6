#include "syncopate/parallel/averagers/low_rank.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/parallel/averagers/orthonormal.h"
#include "syncopate/parallel/averagers/packer.h"

namespace syncopate::parallel {
namespace {

constexpr uint64_t kKey = 0x10c0;

/// Where numbers that lie on `device` are multiplied.
c10::Device place_of_products(c10::Device device) {
  return packs_on(device) ? device : c10::Device(at::kCPU);
}

}  // namespace

/// One piece on its way. `first_` holds what is summed as it is, then every P'; `second_` every Q'.
class LowRank::Exchange : public TwoRounds::Exchange {
 public:
  Exchange(LowRank& owner, Piece piece) : owner_(owner), piece_(std::move(piece)) {
    const at::Tensor flat = piece_.tensor.view({-1});
    numbers_ = flat.to(place_of_products(flat.device()), at::kFloat);
    if (piece_.rows.defined()) piece_.rows = piece_.rows.to(numbers_.device());  // as what is kept
    plan();
    if (owner_.options_.error_feedback && all_finite(numbers_)) {
      rest_ = owner_.rest_.take(piece_);
      numbers_.add_(rest_);
    }
    first_ = at::empty({plain_size_ + thin_size(&Low::rows)}, numbers_.options());
    for_each_plain([](const at::Tensor& mine, const at::Tensor& sent) { sent.copy_(mine); });
    std::vector<at::Tensor> bases;
    std::vector<uint64_t> keys;
    for (const Low& low : lows_) {
      bases.push_back(low.matrix->q.clone());
      keys.push_back(mix_key(kKey, low.matrix->offset));
    }
    orthonormalize(bases, keys);
    int64_t at = plain_size_;
    for (size_t i = 0; i < lows_.size(); ++i) {
      Low& low = lows_[i];
      low.p = take_matrix(first_, at, low.rank, low.rows);
      at::mm_out(low.p, bases[i], matrix_of(numbers_, low).t());
    }
    pending_ = owner_.group_.all_reduce(first_, comm::Op::kSum);
  }

  void turn() override {
    pending_.wait();
    // Alike on all ranks. What is kept then stays as it was, since nothing of this step will be used.
    sound_ = all_finite(first_);
    if (sound_) orthonormalize(thin_ones());
    second_ = at::empty({thin_size(&Low::columns)}, numbers_.options());
    int64_t at = 0;
    for (Low& low : lows_) {
      low.q = take_matrix(second_, at, low.rank, low.columns);
      const at::Tensor matrix = matrix_of(numbers_, low);
      at::mm_out(low.q, low.p, matrix);
      if (rest_.defined() && sound_) matrix.addmm_(low.p.t(), low.q, 1, -1);
    }
    if (rest_.defined() && sound_) {
      for_each_plain([](const at::Tensor& mine, const at::Tensor&) { mine.zero_(); });
      rest_.copy_(numbers_);
      owner_.rest_.put(piece_, rest_);
    }
    pending_ = owner_.group_.all_reduce(second_, comm::Op::kSum);
  }

  void finish() override {
    pending_.wait();
    for_each_plain([](const at::Tensor& mine, const at::Tensor& sent) { mine.copy_(sent); });
    const bool keeps = sound_ && all_finite(second_);
    for (Low& low : lows_) {
      at::Tensor matrix = matrix_of(numbers_, low);
      at::mm_out(matrix, low.p.t(), low.q);
      if (keeps) low.matrix->q.copy_(low.q);
    }
    if (numbers_.data_ptr() != piece_.tensor.data_ptr()) piece_.tensor.view({-1}).copy_(numbers_);
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
      if (begin < 0 || begin + size > numbers_.numel() || size == 0) continue;
      const double thin = owner_.options_.min_rate * static_cast<double>((rows + matrix.columns) * rank);
      if (thin >= static_cast<double>(size)) continue;
      if (covered < begin) plain_.emplace_back(covered, begin);
      covered = begin + size;
      lows_.push_back({&matrix, begin, rows, matrix.columns, rank});
    }
    if (covered < numbers_.numel()) plain_.emplace_back(covered, numbers_.numel());
    for (const auto& [begin, end] : plain_) plain_size_ += end - begin;
  }

  std::vector<at::Tensor> thin_ones() const {
    std::vector<at::Tensor> all;
    for (const Low& low : lows_) all.push_back(low.p);
    return all;
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
      use(numbers_.narrow(0, begin, end - begin), first_.narrow(0, at, end - begin));
      at += end - begin;
    }
  }

  LowRank& owner_;
  Piece piece_;
  at::Tensor numbers_, rest_, first_, second_;
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
  const c10::Device place = place_of_products(replica.params.values.device());
  for (const auto& entry : replica.params.entries()) {
    if (entry.parameter.dim() < 2 || entry.size == 0) continue;
    const int64_t rows = entry.parameter.size(0), columns = entry.size / rows;
    const int64_t full = std::min(rows, columns);
    largest = std::max(largest, full);
    // Zeros: whoever uses them first takes random directions instead.
    matrices_.push_back({entry.name, entry.offset, rows, columns,
                         at::zeros({std::min(options_.rank, full), columns},
                                   at::TensorOptions().dtype(at::kFloat).device(place))});
  }
  if (options_.rank > largest) {
    throw ConfigError("the rank {} is above that of every matrix of the model; {} is the largest of use",
                      options_.rank, largest);
  }
  if (options_.error_feedback) rest_.attach(replica, "power-sgd.rest", place, options_.scaled);
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
