#pragma once

// The library: train a model of your own under any strategy, on any number of workers. docs/library.md shows
// every call.
#include "syncopate/base/error.h"
#include "syncopate/data/dataset.h"
#include "syncopate/library/session.h"
#include "syncopate/library/world.h"
#include "syncopate/nn/model.h"
#include "syncopate/optim/schedule.h"

namespace syncopate {

using data::Dataset;
using nn::Model;
using tensor::Batch;
using tensor::Loss;

}  // namespace syncopate
