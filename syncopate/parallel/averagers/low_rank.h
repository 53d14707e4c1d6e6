#pragma once

#include <vector>

#include "syncopate/parallel/averager.h"
#include "syncopate/parallel/averagers/residual.h"
#include "syncopate/parallel/averagers/two_rounds.h"

namespace syncopate::parallel {

/// PowerSGD (Vogels, Karimireddy and Jaggi, 2019): a matrix M of gradients travels as two thin ones. With the
/// Q of the last step, P = M Q is summed over ranks and made orthonormal, Q = M' P is summed, and P Q' stands
/// for the sum. What it leaves out, M - P (M' P)', is kept and added to the next gradient. Vectors, and
/// matrices too small for it to pay, are summed as they are, in the same call as the P's: a piece takes two
/// all-reduces. Of an embedding table P has the rows that were read.
///
/// What lies on a GPU is multiplied there. Ranks compute the sum from the same factors; on GPUs of different
/// models the products may differ in the last place.
class LowRank : public Averager {
 public:
  struct Options {
    int64_t rank = 4;  ///< less for matrices that have less
    bool error_feedback = true;
    bool scaled = true;   ///< pieces are gradients in the loss scale, where there is one
    int64_t warmup = 0;   ///< steps that are summed as they are
    double min_rate = 1;  ///< a matrix is compressed if that makes it smaller by more than this
  };

  /// `group` must outlive the averager. Throws ConfigError for a rank below 1.
  LowRank(comm::Group& group, Options options);
  /// Throws ConfigError when no matrix has the rank.
  void attach(const Replica& replica) override;
  void begin(int64_t step) override;
  comm::Pending start(Piece piece) override;
  std::vector<StateTensor> state() override;

 private:
  class Exchange;
  struct Matrix {
    std::string name;  ///< the parameter's
    int64_t offset, rows, columns;
    at::Tensor q;  ///< [rank, columns], of the last step
  };

  comm::Group& group_;
  Options options_;
  std::vector<Matrix> matrices_;  ///< in the order of the flat array
  Residual rest_;
  TwoRounds rounds_;
  int64_t step_ = 0;
};

}  // namespace syncopate::parallel
