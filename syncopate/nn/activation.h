#pragma once

namespace syncopate::nn {

enum class Activation { kGelu, kGeluTanh };

/// What at::gelu calls it.
constexpr const char* gelu_kind(Activation activation) {
  return activation == Activation::kGelu ? "none" : "tanh";
}

/// What a config.json calls it.
constexpr const char* activation_name(Activation activation) {
  return activation == Activation::kGelu ? "gelu" : "gelu_new";
}

}  // namespace syncopate::nn
