#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace syncopate {

/// A part by its name, by its options, or one of your own.
template <typename Options, typename Own>
class Choice {
 public:
  Choice(const char* name) : value_(std::in_place_type<std::string>, name) {}
  Choice(std::string name) : value_(std::in_place_type<std::string>, std::move(name)) {}
  Choice(Options options) : value_(std::in_place_type<Options>, std::move(options)) {}
  template <typename Mine>
  requires(std::convertible_to<Mine, Own> && !std::convertible_to<Mine, std::string> &&
           !std::same_as<std::decay_t<Mine>, Options> && !std::same_as<std::decay_t<Mine>, Choice>)
      Choice(Mine&& own)
      : value_(std::in_place_type<Own>, std::forward<Mine>(own)) {}

  const Own* own() const { return std::get_if<Own>(&value_); }  ///< null: known by name or options
  /// As options; `named` makes them of a name.
  template <typename Named>
  Options options(const Named& named) const {
    if (const auto* name = std::get_if<std::string>(&value_)) return named(*name);
    return std::get<Options>(value_);
  }

 private:
  std::variant<std::string, Options, Own> value_;
};

}  // namespace syncopate
