#include "syncopate/parallel/totals.h"

#include <ATen/ATen.h>

#include "syncopate/comm/direct_sum.h"

namespace syncopate::parallel {
namespace {

constexpr int64_t kWishes = 1, kEarlier = 2;  // rows
constexpr int kTotalsTag = 61;

}  // namespace

void Totals::start(const LocalLoss& mine, std::span<const LocalLoss> earlier, const Wishes& wishes) {
  sums_ = at::zeros({kEarlier + static_cast<int64_t>(earlier.size()), 2}, at::kDouble);
  double* next = sums_.data_ptr<double>();
  const auto put = [&](double first, double second) {
    *next++ = first;
    *next++ = second;
  };
  put(mine.sum, static_cast<double>(mine.count));
  const Wishes of_clock{.time_is_up = wishes.time_is_up, .save = wishes.save};
  put(wishes.stop ? 1 : 0, group_.rank() == 0 ? static_cast<double>(of_clock.bits()) : 0);
  for (const LocalLoss& loss : earlier) put(loss.sum, static_cast<double>(loss.count));
  pending_ =
      by_trips_ ? comm::sum_directly(group_, sums_, kTotalsTag) : group_.all_reduce(sums_, comm::Op::kSum);
}

TotalLoss Totals::at(int64_t row) const {
  const double* const values = sums_.data_ptr<double>() + 2 * row;
  return {values[0], values[1]};
}

std::vector<TotalLoss> Totals::earlier() const {
  std::vector<TotalLoss> found;
  for (int64_t row = kEarlier; row < sums_.size(0); ++row) found.push_back(at(row));
  return found;
}

Wishes Totals::wishes() const {
  Wishes wishes = Wishes::of_bits(static_cast<int64_t>(at(kWishes).count));
  wishes.stop = at(kWishes).sum > 0;
  return wishes;
}

}  // namespace syncopate::parallel
