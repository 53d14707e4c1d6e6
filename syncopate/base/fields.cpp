#include "syncopate/base/fields.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/text.h"

namespace syncopate {
namespace {

struct ParseInto {
  std::string_view name, text;

  [[noreturn]] void refuse(const char* expected) const {
    throw ConfigError("{} must be {}, got \"{}\"", name, expected, text);
  }
  void operator()(int64_t* target) const {
    const auto value = parse_integer(text);
    if (!value) refuse("a whole number");
    *target = *value;
  }
  void operator()(double* target) const {
    const auto value = parse_number(text);
    if (!value) refuse("a number");
    *target = *value;
  }
  void operator()(bool* target) const {
    if (text != "true" && text != "false") refuse("true or false");
    *target = text == "true";
  }
  void operator()(std::string* target) const { *target = text; }
};

}  // namespace

const Fields::Field& Fields::find(std::string_view name) const {
  std::string dashed(name);
  for (char& letter : dashed) letter = letter == '_' ? '-' : letter;
  std::vector<std::string> names;
  for (const Field& field : fields_) {
    if (field.name == name || (!field.flag.empty() && field.flag == dashed)) return field;
    names.push_back(field.name);
    if (!field.flag.empty()) names.push_back(field.flag);
  }
  const auto near = nearest(name, names);
  throw ConfigError("unknown setting \"{}\"{}", name,
                    near ? fmt::format("; did you mean \"{}\"?", *near)
                         : std::string("; \"syncopate train --help\" lists them all"));
}

void Fields::set(std::string_view name, std::string_view text) const {
  const Field& field = find(name);
  std::visit(ParseInto{field.name, text}, field.target);
}

void Fields::set_assignment(std::string_view assignment) const {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw ConfigError("a setting is given as name=value, got \"{}\"", assignment);
  }
  set(trim(assignment.substr(0, equals)), trim(assignment.substr(equals + 1)));
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
    set(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

std::string Fields::hash() const { return fmt::format("{:016x}", checksum(to_json().dump())); }

std::string Fields::text_of(const Field& field) {
  return std::visit([](const auto* target) { return fmt::format("{}", *target); }, field.target);
}

}  // namespace syncopate
