#include "syncopate/tensor/safetensors_types.h"

#include <array>
#include <utility>

namespace syncopate::tensor {
namespace {

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 10> kTypes = {{
    {"F64", at::kDouble},
    {"F32", at::kFloat},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I64", at::kLong},
    {"I32", at::kInt},
    {"I16", at::kShort},
    {"I8", at::kChar},
    {"U8", at::kByte},
    {"BOOL", at::kBool},
}};

}  // namespace

std::optional<at::ScalarType> type_of_name(std::string_view name) {
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return std::nullopt;
}

std::optional<std::string_view> name_of_type(at::ScalarType type) {
  for (const auto& [name, known] : kTypes) {
    if (known == type) return name;
  }
  return std::nullopt;
}

}  // namespace syncopate::tensor
