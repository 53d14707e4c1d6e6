#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace syncopate::tensor {

/// The format's names of element types; nothing for a type it or we do not have.
std::optional<at::ScalarType> type_of_name(std::string_view name);
std::optional<std::string_view> name_of_type(at::ScalarType type);

}  // namespace syncopate::tensor
