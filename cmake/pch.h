#pragma once
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
