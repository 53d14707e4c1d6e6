#pragma once

#include <vector>

#include "syncopate/plan/problem.h"

namespace syncopate::plan {

/// All devices in an order in which near ones are neighbours: the leaves of a tree that joins the nearest
/// clusters first.
std::vector<int> by_nearness(const Pairs& pairs, double gb);

/// Layouts that follow the clusters: the devices, taken in that order, fill the grid of stages and replicas
/// tile by tile, for every shape of tile. A tile as wide as a stage puts neighbours into one stage, one as
/// long as the pipeline puts them into one replica. Devices that have no place follow behind.
std::vector<std::vector<int>> tiled(const std::vector<int>& devices, int stages, int replicas);

}  // namespace syncopate::plan
