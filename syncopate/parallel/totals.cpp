#include "syncopate/parallel/totals.h"

#include <ATen/ATen.h>

namespace syncopate::parallel {

Totals::Totals(comm::Group& group) : group_(group), sums_(at::zeros({4}, at::kDouble)) {}

void Totals::start(const LocalLoss& mine, bool stop, bool time_is_up) {
  double* const sums = sums_.data_ptr<double>();
  sums[0] = mine.sum;
  sums[1] = static_cast<double>(mine.count);
  sums[2] = stop ? 1 : 0;
  sums[3] = time_is_up && group_.rank() == 0 ? 1 : 0;  // clocks differ: one decides
  pending_ = group_.all_reduce(sums_, comm::Op::kSum);
}

double Totals::loss_sum() const { return sums_.data_ptr<double>()[0]; }
double Totals::count() const { return sums_.data_ptr<double>()[1]; }
bool Totals::stop() const { return sums_.data_ptr<double>()[2] > 0; }
bool Totals::time_is_up() const { return sums_.data_ptr<double>()[3] > 0; }

}  // namespace syncopate::parallel
