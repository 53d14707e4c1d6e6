#include "syncopate/parallel/averagers/gather_scatter.h"

#include <ATen/ATen.h>

#include <vector>

namespace syncopate::parallel {

comm::Pending GatherScatter::start(Piece piece) {
  const at::Tensor& tensor = piece.tensor;
  constexpr int kRoot = 0;
  std::vector<at::Tensor> gathered, scattered;
  if (group_.rank() == kRoot) {
    for (int rank = 0; rank < group_.size(); ++rank) gathered.push_back(at::empty_like(tensor));
  }
  group_.gather(gathered, tensor, kRoot).wait();
  if (group_.rank() == kRoot) {
    at::Tensor sum = gathered.front();
    for (size_t rank = 1; rank < gathered.size(); ++rank) sum.add_(gathered[rank]);
    scattered.assign(gathered.size(), sum);
  }
  group_.scatter(tensor, scattered, kRoot).wait();
  return {};
}

}  // namespace syncopate::parallel
