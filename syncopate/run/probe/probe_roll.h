#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/lifeline/lifeline.h"

// Who takes part in a probe of links, and who measures with whom.
namespace syncopate::run {

/// Where a rank sits.
struct Seat {
  std::string host{}, region{};
  std::string machine{};  ///< whose cores it computes on: hosts of an emulated network share one
};

struct Pair {
  int low = 0, high = 0;  ///< ranks
  bool inside = false;    ///< both on one host
};

/// Everybody's place in the probe, as rank 0 has put it together.
struct Roll {
  std::vector<Seat> seats;
  std::vector<lifeline::Address> addresses;
  std::string key;

  std::vector<int> hosts;  ///< of each rank
  std::vector<int> first;  ///< rank on each host
  std::vector<Pair> pairs;
};

/// All ranks tell where they sit and at which address they listen. Collective. Throws CommError.
Roll call_roll(lifeline::Lifeline& line, const Seat& seat, const lifeline::Address& mine,
               std::chrono::milliseconds timeout);

/// Pairs of `n` hosts in rounds in which each is in one pair at most (a round-robin tournament).
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int n);

}  // namespace syncopate::run
