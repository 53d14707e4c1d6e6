#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
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
    std::string flag;                    ///< without dashes; empty: reachable by --set only
    std::string type{};                  ///< what a value is, for people: "INT", "FILE"; empty: a switch
    std::vector<std::string> choices{};  ///< the values there are; empty: any of the type
    std::string zero{};                  ///< a word that stands for 0: "auto", "off"

    Field& takes(std::string_view what) { return type = what, *this; }
    Field& one_of(std::vector<std::string> values) { return choices = std::move(values), *this; }
    /// Shows 0 as `word` and takes the word for it. Where the word is "auto", 0 itself is refused: it is how
    /// the program writes that nobody chose, and no number that anybody could mean.
    Field& zero_is(std::string_view word) { return zero = word, *this; }
    /// As people know it: "--lr", or its dotted name where it has no flag.
    std::string label() const { return flag.empty() ? name : "--" + flag; }
  };

  /// The field, to say more about it before the next one is added.
  template <typename Value>
  Field& add(std::string_view name, Value& value, std::string_view help, std::string_view flag = "") {
    fields_.push_back({prefix_ + std::string(name), &value, std::string(help), std::string(flag)});
    return fields_.back().takes(type_of(&value));
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

  /// The field called `name` (its dotted name or its flag); throws ConfigError with a suggestion.
  const Field& find(std::string_view name) const;
  /// Sets it from text and returns it; throws ConfigError also with what was expected for a value of the
  /// wrong kind.
  const Field& set(std::string_view name, std::string_view text) const;
  /// "name=value".
  const Field& set_assignment(std::string_view assignment) const;

  nlohmann::ordered_json to_json() const;                      ///< flat: {"optim.lr": 0.0005, ...}
  void from_json(const nlohmann::ordered_json& values) const;  ///< what to_json gave, or a part of it
  /// Sixteen hexadecimal digits that depend on every value and nothing else.
  std::string hash() const;

  static std::string text_of(const Field& field);  ///< as set() reads it

 private:
  static const char* type_of(const int64_t*) { return "INT"; }
  static const char* type_of(const double*) { return "FLOAT"; }
  static const char* type_of(const bool*) { return ""; }
  static const char* type_of(const std::string*) { return "TEXT"; }
  std::vector<Field> fields_;
  std::string prefix_;
};

}  // namespace syncopate
