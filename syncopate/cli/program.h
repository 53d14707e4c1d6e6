#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace syncopate::cli {

/// An option, or a setting, as people read it.
struct OptionText {
  std::string name;      ///< "--task", "FILE" of one that is given by its place, "optim.lr" of a setting
  std::string letter{};  ///< "-h", if it has one
  std::string type{};    ///< what follows it; empty: nothing does
  std::string help{};
  std::string preset{};  ///< its value where nobody gives one; empty: not said
  std::vector<std::string> choices{};
  bool required = false;  ///< one that is given by its place

  std::string call() const { return type.empty() ? name : name + " " + type; }
  /// The help with the values there are and the default.
  std::string sentence() const;
};

/// The program's commands and options: the parser, and what it does not hold about them. Help, the manual and
/// completions are made from this alone.
struct Program {
  CLI::App app;
  std::map<const CLI::Option*, std::vector<std::string>> choices{};  ///< the values there are
  std::map<const CLI::App*, std::vector<OptionText>> settings{};     ///< what --set takes
  std::map<const CLI::App*, std::vector<std::string>> notes{};       ///< paragraphs below the options
  std::map<const CLI::App*, std::vector<std::string>> examples{};    ///< whole commands
};

struct OptionGroup {
  std::string title;
  std::vector<OptionText> options;
};

/// One command as people read it.
struct CommandText {
  std::string name;     ///< "train"; the program's own is empty
  std::string purpose;  ///< one sentence
  std::vector<OptionText> places;
  std::vector<OptionGroup> groups;
  std::vector<OptionText> settings;
  std::vector<std::string> notes, examples;
};

CommandText describe(const Program& program, const CLI::App& command);
std::vector<CommandText> describe_commands(const Program& program);

/// "syncopate train [options]".
std::string usage_of(const CommandText& command);

}  // namespace syncopate::cli
