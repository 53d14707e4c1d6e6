#include "syncopate/parallel/averagers/coded.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/base/rng.h"
#include "syncopate/base/share.h"

namespace syncopate::parallel {
namespace {

constexpr int kFirstTag = 1 << 16, kTags = 1 << 20;  // apart from others that send on the group

}  // namespace

/// One piece on its way. The parts are slices of `numbers_`, which is the piece itself where it can be.
class Coded::Exchange : public TwoRounds::Exchange {
 public:
  Exchange(Coded& coded, Piece piece, int tag)
      : coded_(coded),
        packer_(coded.packer_),
        piece_(std::move(piece)),
        ranks_(coded.group_.size()),
        me_(coded.group_.rank()),
        tag_(tag),
        step_(coded.step_) {
    const at::Tensor flat = piece_.tensor.view({-1});
    numbers_ = flat.to(packer_.place_of(flat.device()), at::kFloat);
    if (piece_.rows.defined()) piece_.rows = piece_.rows.to(numbers_.device());  // as what is kept
    if (coded_.options_.error_feedback && all_finite(numbers_)) rest_ = coded_.kept_->sent.take(piece_);
    for (int rank = 0; rank < ranks_; ++rank) {
      arriving_.push_back(rank == me_ ? at::Tensor() : packed_for(me_));
      if (rank != me_) pending_.push_back(coded_.group_.receive(arriving_.back(), rank, tag_));
    }
    // To the next rank first, so that not all send to the same one.
    for (int step = 1; step < ranks_; ++step) send_part((me_ + step) % ranks_);
    keep_own_part();
    if (!rest_.defined()) return;
    clear_gaps(rest_);
    coded_.kept_->sent.put(piece_, rest_);
  }

  void turn() override {
    wait_for_all();
    const at::Tensor sum = part_of(numbers_, me_), owned = packed_for(me_);
    add_up(sum);
    pack_sum(sum, owned);
    for (int step = 1; step < ranks_; ++step) {
      const int to = (me_ + step) % ranks_, from = (me_ - step + ranks_) % ranks_;
      arriving_[static_cast<size_t>(from)] = packed_for(from);
      pending_.push_back(coded_.group_.receive(arriving_[static_cast<size_t>(from)], from, tag_ + kTags));
      pending_.push_back(coded_.group_.send(owned, to, tag_ + kTags));
    }
    decode(owned, me_);
  }

  void finish() override {
    wait_for_all();
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank != me_) decode(arriving_[static_cast<size_t>(rank)], rank);
    }
    clear_gaps(numbers_);
    if (numbers_.data_ptr() != piece_.tensor.data_ptr()) piece_.tensor.view({-1}).copy_(numbers_);
  }

 private:
  Share share(int rank) const { return share_of(numbers_.numel(), rank, ranks_, kPackedGrain); }
  int64_t size_of(int rank) const { return share(rank).size(); }
  at::Tensor part_of(const at::Tensor& flat, int rank) const {
    return flat.narrow(0, share(rank).begin, share(rank).size());
  }
  at::Tensor packed_for(int rank) const { return packer_.room(size_of(rank), numbers_.device()); }
  /// Alike on all ranks and in both rounds: random-k's sum then needs no elements that were not sent.
  uint64_t key_of(int rank) const { return mix_key(step_, piece_.offset, rank); }

  void send_part(int to) {
    const at::Tensor part = part_of(numbers_, to), packed = packed_for(to);
    if (rest_.defined()) {
      packer_.encode_with_rest(part, part_of(rest_, to), packed, key_of(to));
    } else {
      packer_.encode(part, packed, key_of(to));
    }
    pending_.push_back(coded_.group_.send(packed, to, tag_));
  }

  /// What stays here needs no packing: all of it goes into the sum.
  void keep_own_part() {
    if (!rest_.defined()) return;
    const at::Tensor rest = part_of(rest_, me_);
    part_of(numbers_, me_).add_(rest);
    rest.zero_();
  }

  /// Adds the others' parts to this rank's, in rank order whoever owns it.
  void add_up(const at::Tensor& mine) {
    at::Tensor sum = mine;
    if (me_ > 0) {
      sum = at::empty_like(mine);
      packer_.decode(arriving_[0], sum, key_of(me_));
    }
    for (int rank = 1; rank < ranks_; ++rank) {
      if (rank == me_) {
        sum.add_(mine);
      } else {
        packer_.decode_add(arriving_[static_cast<size_t>(rank)], sum, key_of(me_));
      }
    }
    if (me_ > 0) mine.copy_(sum);
  }

  void pack_sum(const at::Tensor& sum, const at::Tensor& packed) {
    if (!coded_.options_.error_feedback) {
      packer_.encode(sum, packed, key_of(me_));
      return;
    }
    const at::Tensor rest = coded_.kept_->owned.take(piece_);
    packer_.encode_with_rest(sum, part_of(rest, me_), packed, key_of(me_));
    clear_gaps(rest);
    coded_.kept_->owned.put(piece_, rest);
  }

  void decode(const at::Tensor& packed, int owner) {
    packer_.decode(packed, part_of(numbers_, owner), key_of(owner));
  }

  /// A codec may have no zero: what lies between parameters must stay one, in the sum and in what is kept.
  void clear_gaps(const at::Tensor& flat) {
    if (piece_.rows.defined()) return;
    for (const Slice& gap : coded_.kept_->gaps) {
      const int64_t begin = std::max(gap.begin - piece_.offset, int64_t{0});
      const int64_t end = std::min(gap.end - piece_.offset, flat.numel());
      if (begin < end) flat.narrow(0, begin, end - begin).zero_();
    }
  }

  void wait_for_all() {
    for (comm::Pending& pending : std::exchange(pending_, {})) pending.wait();
  }

  Coded& coded_;
  const Packer& packer_;
  Piece piece_;
  int ranks_, me_, tag_;
  int64_t step_;  ///< in which it started; others may have begun before it ends
  at::Tensor numbers_, rest_;
  std::vector<at::Tensor> arriving_;  ///< by rank: parts of what this rank owns, then owners' sums
  std::vector<comm::Pending> pending_;
};

Coded::Coded(comm::Group& group, std::unique_ptr<codec::Codec> codec, Options options)
    : group_(group), packer_(std::move(codec)), options_(std::move(options)) {}

Coded::Coded(Coded& beside, std::unique_ptr<codec::Codec> codec)
    : group_(beside.group_), packer_(std::move(codec)), options_(beside.options_), kept_(beside.kept_) {}

void Coded::attach(const Replica& replica) {
  kept_->gaps.clear();
  const auto& entries = replica.params.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const int64_t begin = entries[i].offset + entries[i].size;
    const int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : replica.params.size();
    if (begin < end) kept_->gaps.push_back({begin, end});
  }
  if (!options_.error_feedback) return;
  const c10::Device place = packer_.place_of(replica.params.values.device());
  kept_->sent.attach(replica, options_.name + ".rest", place, options_.scaled);
  kept_->owned.attach(replica, options_.name + ".owner_rest", place, options_.scaled);
}

void Coded::begin(int64_t step) {
  step_ = step;
  kept_->sent.begin();
  kept_->owned.begin();
}

comm::Pending Coded::start(Piece piece) {
  if (group_.size() == 1) return {};
  kept_->tag = (kept_->tag + 1) % kTags;
  return rounds_.add(std::make_shared<Exchange>(*this, std::move(piece), kFirstTag + kept_->tag));
}

std::vector<StateTensor> Coded::state() {
  if (!options_.error_feedback) return {};
  std::vector<StateTensor> state = kept_->sent.state();
  append(state, "", kept_->owned.state());
  return state;
}

}  // namespace syncopate::parallel
