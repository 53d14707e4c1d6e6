#pragma once

#include <cstdint>
#include <span>
#include <vector>

// How the examples of one global batch are spread over workers and micro-batches where they differ in cost.
// Functions of the costs alone, in whole numbers: every worker comes to the same, and a resumed run as well.
namespace syncopate::data {

/// How far an example may go from its place in the global batch. The batch itself always stays as it is.
enum class Arrange {
  kInOrder,        ///< nowhere: workers and their micro-batches are contiguous
  kWithinWorkers,  ///< into another micro-batch of its worker
  kAcrossWorkers,  ///< also to another worker
};

/// What it takes to compute on a text, in tokens of a short one; attention grows with the square. 1 for an
/// example that has no length.
int64_t cost_of(int64_t tokens);

/// Gives each example's worker, such that costs are in the proportion of `weights` (0 or more, not all 0):
/// from the dearest to the cheapest, each goes to the worker that would be done with it first. All workers so
/// get dear and cheap ones, in place of one always having the long texts. Where there are enough examples,
/// nobody whose weight is above 0 goes without.
std::vector<int> deal(std::span<const int64_t> costs, std::span<const int64_t> weights);

/// Gives each example's part of `parts` of nearly equal cost, the cheapest examples in the first: little
/// padding, and micro-batches that take equally long. None is empty where there are enough examples.
std::vector<int> cut_by_cost(std::span<const int64_t> costs, int parts);

}  // namespace syncopate::data
