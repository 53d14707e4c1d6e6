#pragma once

#include <memory>

#include "syncopate/codec/codec.h"
#include "syncopate/parallel/averager.h"
#include "syncopate/parallel/averagers/packer.h"
#include "syncopate/parallel/averagers/residual.h"
#include "syncopate/parallel/averagers/two_rounds.h"
#include "syncopate/parallel/slice.h"

namespace syncopate::parallel {

/// A sum over ranks of which only packed bytes travel. A piece is cut into one part for each rank, its owner:
/// everybody sends the owner its packed part, the owner adds them in rank order, packs the sum and sends it
/// to all. What packing loses is kept and added to the next gradient, by the senders and by the owner (error
/// feedback). A piece that is not finite gives a sum that is not finite on every rank and leaves what its
/// rank keeps as it was; what other ranks sent of that step counts as sent.
///
/// What lies on a GPU is packed and added up there, and only packed bytes leave it (see Packer).
class Coded : public Averager {
 public:
  struct Options {
    bool error_feedback = true;
    bool scaled = true;          ///< pieces are gradients in the loss scale, where there is one
    std::string name = "codec";  ///< of its state in a checkpoint
  };

  /// `group` must outlive the averager.
  Coded(comm::Group& group, std::unique_ptr<codec::Codec> codec, Options options);
  /// Another codec for other pieces of the array that `beside` is attached to, which keeps for both what was
  /// not sent and must outlive this one.
  Coded(Coded& beside, std::unique_ptr<codec::Codec> codec);
  void attach(const Replica& replica) override;
  void begin(int64_t step) override;
  comm::Pending start(Piece piece) override;
  std::vector<StateTensor> state() override;

 private:
  class Exchange;

  comm::Group& group_;
  Packer packer_;
  Options options_;
  struct Kept {
    Residual sent, owned;     ///< of what this rank should have sent, and of the sums it owns
    std::vector<Slice> gaps;  ///< of the flat array, that belong to no parameter
    int tag = 0;              ///< of the last piece
  };
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
  TwoRounds rounds_;
  int64_t step_ = 0;
};

}  // namespace syncopate::parallel
