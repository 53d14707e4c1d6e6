#include "syncopate/cli/help.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/progress.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"

namespace syncopate::cli {
namespace {

constexpr size_t kMargin = 2;

void add_paragraph(const std::string& text, size_t columns, std::string& into) {
  const size_t margin = text.find_first_not_of(' ');
  for (const std::string& line : wrap(text, columns, margin > 0 ? margin + 2 : 0)) into += line + "\n";
}

void add_usage(const CommandText& command, size_t columns, std::string& into) {
  constexpr size_t kIndent = 6;
  for (const std::string& line : wrap("Usage: " + usage_of(command), columns, kIndent)) into += line + "\n";
  into += "\n";
}

/// "  --task TASK   what to learn", the second part in a column of its own, or below where that is narrow.
void add_entry(const std::string& name, const std::string& text, size_t columns, std::string& into) {
  constexpr size_t kWide = 64, kBeside = 28, kBelow = 6;
  const bool beside = columns >= kWide;
  const size_t indent = beside ? kBeside : kBelow;
  std::string head = std::string(kMargin, ' ') + name;
  const bool fits = beside && columns_of(head) + 2 <= indent;
  if (fits) {
    head += std::string(indent - columns_of(head), ' ');
  } else {
    into += head + "\n";
    head = std::string(indent, ' ');
  }
  for (const std::string& line : wrap(text, columns - indent)) {
    into += head + line + "\n";
    head = std::string(indent, ' ');
  }
}

void add_options(const std::vector<OptionGroup>& groups, size_t columns, std::string& into) {
  for (const OptionGroup& group : groups) {
    into += fmt::format("\n{}:\n", group.title);
    for (const OptionText& option : group.options) {
      const std::string letter = option.letter.empty() ? "" : option.letter + ", ";
      add_entry(letter + option.call(), option.sentence(), columns, into);
    }
  }
}

/// A command that can be copied: where it is too long, broken before an option with a backslash.
void add_example(const std::string& command, size_t columns, std::string& into) {
  constexpr size_t kIndent = 6, kBackslash = 2;
  std::string line(kMargin, ' ');
  for (size_t at = 0; at < command.size();) {
    const size_t next = std::min(command.find(" --", at + 1), command.size());
    const std::string piece = command.substr(at, next - at);
    if (at > 0 && columns_of(line) + columns_of(piece) + kBackslash > columns) {
      into += line + " \\\n";
      line = std::string(kIndent - 1, ' ');
    }
    line += piece;
    at = next;
  }
  into += line + "\n";
}

void add_examples(const std::vector<std::string>& examples, size_t columns, std::string& into) {
  if (examples.empty()) return;
  into += examples.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (const std::string& example : examples) add_example(example, columns, into);
}

size_t columns_of_output() {
  constexpr int kWidest = 100;  // longer lines are hard to read
  return static_cast<size_t>(std::clamp(terminal_columns(STDOUT_FILENO), 20, kWidest));
}

class Formatter : public CLI::FormatterBase {
 public:
  explicit Formatter(const Program& program) : program_(program) {}
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    const bool all = mode == CLI::AppFormatMode::All;
    if (app == &program_.app) return program_help(program_, columns_of_output(), all);
    return help_text(describe(program_, *app), columns_of_output(), all);
  }

 private:
  const Program& program_;
};

}  // namespace

std::string help_text(const CommandText& command, size_t columns, bool all) {
  std::string text;
  add_usage(command, columns, text);
  add_paragraph(command.purpose + ".", columns, text);
  if (!command.places.empty()) text += "\n";
  for (const OptionText& place : command.places) add_entry(place.name, place.sentence(), columns, text);
  add_options(command.groups, columns, text);
  if (!command.settings.empty() && !all) {
    text += "\n";
    add_paragraph(fmt::format("\"syncopate {} --help-all\" lists the settings for --set.", command.name),
                  columns, text);
  }
  if (!command.settings.empty() && all) {
    text += "\nSettings for --set and experiment files:\n";
    for (const OptionText& setting : command.settings)
      add_entry(setting.call(), setting.sentence(), columns, text);
  }
  if (!command.notes.empty()) text += "\n";
  for (const std::string& note : command.notes) add_paragraph(note, columns, text);
  add_examples(command.examples, columns, text);
  return text;
}

std::string program_help(const Program& program, size_t columns, bool all) {
  const CommandText own = describe(program, program.app);
  std::string text;
  add_usage(own, columns, text);
  add_paragraph(own.purpose + ".", columns, text);
  text += "\nCommands:\n";
  const std::vector<CommandText> commands = describe_commands(program);
  for (const CommandText& command : commands) add_entry(command.name, command.purpose, columns, text);
  add_options(own.groups, columns, text);
  text += "\n";
  for (const std::string& note : own.notes) add_paragraph(note, columns, text);
  add_examples(own.examples, columns, text);
  for (size_t i = 0; all && i < commands.size(); ++i) {
    text += "\n" + std::string(std::min<size_t>(columns, 40), '-') + "\n";
    text += help_text(commands[i], columns, true);
  }
  return text;
}

void answer_help(Program& program) {
  program.app.formatter(std::make_shared<Formatter>(program));
  program.app.set_help_flag("-h,--help", "show this help");
  program.app.set_help_all_flag("--help-all", "show this help and every setting there is");
}

Command add_help(Program& program) {
  CLI::App* app = program.app.add_subcommand("help", "Show the help of a command");
  auto command = std::make_shared<std::string>();
  app->add_option("command", *command, "the command (default: all of them in short)")->type_name("COMMAND");
  program.examples[app] = {"syncopate help train"};
  return [&program, command] {
    const std::vector<CommandText> commands = describe_commands(program);
    if (command->empty()) {
      fmt::print("{}", program_help(program, columns_of_output(), false));
      return 0;
    }
    std::vector<std::string> names;
    for (const CommandText& each : commands) {
      names.push_back(each.name);
      if (each.name != *command) continue;
      fmt::print("{}", help_text(each, columns_of_output(), false));
      return 0;
    }
    throw ConfigError("unknown command {}{}", *command, suggestion(*command, names));
  };
}

}  // namespace syncopate::cli
