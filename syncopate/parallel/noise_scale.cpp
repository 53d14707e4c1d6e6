#include "syncopate/parallel/noise_scale.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "syncopate/optim/clip.h"

namespace syncopate::parallel {

class NoiseScale::Looking : public Averager {
 public:
  Looking(NoiseScale& scale, std::unique_ptr<Averager> inner) : scale_(scale), inner_(std::move(inner)) {}

  void attach(const Replica& replica) override { inner_->attach(replica); }
  void begin(int64_t step) override {
    scale_.measures_ = step % kEvery == 0;
    scale_.squares_ = 0;
    inner_->begin(step);
  }
  comm::Pending start(Piece piece) override {
    if (scale_.measures_) {
      // Of a whole table whose other rows are zero, the rows alone: as they are where they travel by
      // themselves.
      const double norm = optim::gradient_norm(
          piece.in_use.defined() ? piece.tensor.index_select(0, piece.rows) : piece.tensor, 1);
      scale_.squares_ += norm * norm;
    }
    return inner_->start(std::move(piece));
  }
  bool sums_in_place() const override { return inner_->sums_in_place(); }
  bool sums_into_common() const override { return inner_->sums_into_common(); }
  std::vector<StateTensor> state() override { return inner_->state(); }

 private:
  NoiseScale& scale_;
  std::unique_ptr<Averager> inner_;
};

std::unique_ptr<Averager> NoiseScale::looking(std::unique_ptr<Averager> inner) {
  return std::make_unique<Looking>(*this, std::move(inner));
}

void NoiseScale::add(double mine, double few, double all, double many) {
  if (!(few > 0 && few < many) || !std::isfinite(mine) || !std::isfinite(all)) return;
  // E|G_B|^2 = |G|^2 + trace / B: two batch sizes give both.
  norms_ += (many * all - few * mine) / (many - few);
  traces_ += (mine - all) / (1 / few - 1 / many);
}

double NoiseScale::estimate(comm::Group& group) const {
  const at::Tensor sums = at::empty({2}, at::kDouble);
  double* const values = sums.data_ptr<double>();
  values[0] = traces_;
  values[1] = norms_;
  group.all_reduce(sums, comm::Op::kSum).wait();
  // Each estimate is noisy and may be below zero; only their means are divided.
  return values[0] > 0 && values[1] > 0 ? values[0] / values[1] : std::nan("");
}

}  // namespace syncopate::parallel
