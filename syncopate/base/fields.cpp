#include "syncopate/base/fields.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/text.h"

namespace syncopate {
namespace {

struct ParseInto {
  const Fields::Field& field;
  std::string_view text;

  [[noreturn]] void refuse(std::string_view expected) const {
    throw ConfigError("{} must be {}{}, got \"{}\"", field.label(), expected,
                      field.zero.empty() ? "" : " or " + field.zero, text);
  }
  template <typename Number>
  void number(Number* target, std::optional<Number> value, std::string_view expected) const {
    if (!field.zero.empty() && text == field.zero) {
      *target = 0;
      return;
    }
    if (!value) refuse(expected);
    if (*value == 0 && field.zero == "auto") refuse(fmt::format("{} above 0", expected));
    *target = *value;
  }
  void operator()(int64_t* target) const { number(target, parse_integer(text), "a whole number"); }
  void operator()(double* target) const { number(target, parse_number(text), "a number"); }
  void operator()(bool* target) const {
    if (text != "true" && text != "false") refuse("true or false");
    *target = text == "true";
  }
  void operator()(std::string* target) const { *target = text; }
};

/// A value as to_json wrote it; false: it is of another kind.
struct TakeValue {
  const nlohmann::ordered_json& value;
  bool operator()(int64_t* target) const {
    return value.is_number_integer() && (value.get_to(*target), true);
  }
  bool operator()(double* target) const { return value.is_number() && (value.get_to(*target), true); }
  bool operator()(bool* target) const { return value.is_boolean() && (value.get_to(*target), true); }
  bool operator()(std::string* target) const { return value.is_string() && (value.get_to(*target), true); }
};

}  // namespace

const Fields::Field& Fields::find(std::string_view name) const {
  std::string dashed(name);
  for (char& letter : dashed) letter = letter == '_' ? '-' : letter;
  for (const Field& field : fields_) {
    if (field.name == name || (!field.flag.empty() && field.flag == dashed)) return field;
  }
  std::vector<std::string> names;
  for (const Field& field : fields_) {
    names.push_back(field.name);
    if (!field.flag.empty()) names.push_back(field.flag);
  }
  const auto near = nearest(name, names);
  throw ConfigError("unknown setting \"{}\"{}", name,
                    near ? fmt::format("; did you mean \"{}\"?", *near)
                         : std::string("; \"syncopate train --help-all\" lists them all"));
}

const Fields::Field& Fields::set(std::string_view name, std::string_view text) const {
  const Field& field = find(name);
  std::visit(ParseInto{field, text}, field.target);
  return field;
}

const Fields::Field& Fields::set_assignment(std::string_view assignment) const {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw ConfigError("a setting is given as name=value, got \"{}\"", assignment);
  }
  return set(trim(assignment.substr(0, equals)), trim(assignment.substr(equals + 1)));
}

nlohmann::ordered_json Fields::to_json() const {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const Field& field : fields_) {
    std::visit([&](const auto* target) { values[field.name] = *target; }, field.target);
  }
  return values;
}

void Fields::from_json(const nlohmann::ordered_json& values) const {
  for (const auto& [name, value] : values.items()) {
    if (std::visit(TakeValue{value}, find(name).target)) continue;
    set(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

std::string Fields::hash() const { return hexadecimal(checksum(to_json().dump())); }

std::string Fields::text_of(const Field& field) {
  const std::string text =
      std::visit([](const auto* target) { return fmt::format("{}", *target); }, field.target);
  return text == "0" && !field.zero.empty() ? field.zero : text;
}

}  // namespace syncopate
