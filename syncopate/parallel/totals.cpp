#include "syncopate/parallel/totals.h"

#include <ATen/ATen.h>

namespace syncopate::parallel {
namespace {

constexpr int64_t kFlags = 1, kEarlier = 2;  // rows

}  // namespace

void Totals::start(const LocalLoss& mine, std::span<const LocalLoss> earlier, bool stop, bool time_is_up) {
  sums_ = at::zeros({kEarlier + static_cast<int64_t>(earlier.size()), 2}, at::kDouble);
  double* next = sums_.data_ptr<double>();
  const auto put = [&](double first, double second) {
    *next++ = first;
    *next++ = second;
  };
  put(mine.sum, static_cast<double>(mine.count));
  put(stop ? 1 : 0, time_is_up && group_.rank() == 0 ? 1 : 0);  // clocks differ: one decides
  for (const LocalLoss& loss : earlier) put(loss.sum, static_cast<double>(loss.count));
  pending_ = group_.all_reduce(sums_, comm::Op::kSum);
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

bool Totals::stop() const { return at(kFlags).sum > 0; }
bool Totals::time_is_up() const { return at(kFlags).count > 0; }

}  // namespace syncopate::parallel
