#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace syncopate {

/// The settings of one or more options structs, each described once: name, value, one line of help and, for
/// the common ones, a flag. Reading TOML, `--set`, flags, help, the table printed at the start, spec.json and
/// the hash all come from this list. Holds pointers into the structs: they must outlive it.
///
///     struct ScheduleOptions {
///       double lr = 5e-4;
///       void describe(Fields& fields) { fields.add("lr", lr, "peak learning rate", "lr"); }
///     };
class Fields {
 public:
  using Target = std::variant<int64_t*, double*, bool*, std::string*>;
  struct Field {
    std::string name;  ///< dotted: "optim.lr"
    Target target;
    std::string help;
    std::string flag;  ///< without dashes; empty: reachable by --set only
  };

  template <typename Value>
  void add(std::string_view name, Value& value, std::string_view help, std::string_view flag = "") {
    fields_.push_back({prefix_ + std::string(name), &value, std::string(help), std::string(flag)});
  }

  /// The fields of `part`, named "<name>.<field>".
  template <typename Part>
  void group(std::string_view name, Part& part) {
    const std::string outer = prefix_;
    prefix_ += std::string(name) + ".";
    part.describe(*this);
    prefix_ = outer;
  }

  const std::vector<Field>& all() const { return fields_; }

  /// Sets the field called `name` (its dotted name or its flag) from text; throws ConfigError with a
  /// suggestion for an unknown name, and with what was expected for a value of the wrong kind.
  void set(std::string_view name, std::string_view text) const;
  /// "name=value".
  void set_assignment(std::string_view assignment) const;

  nlohmann::ordered_json to_json() const;  ///< flat: {"optim.lr": 0.0005, ...}
  void from_json(const nlohmann::ordered_json& values) const;
  /// Sixteen hexadecimal digits that depend on every value and nothing else.
  std::string hash() const;

  static std::string text_of(const Field& field);

 private:
  const Field& find(std::string_view name) const;
  std::vector<Field> fields_;
  std::string prefix_;
};

}  // namespace syncopate
