#include "syncopate/cli/manual.h"

#include <fmt/format.h>

#include <memory>

#include "syncopate/cli/commands.h"
#include "syncopate/version.h"

namespace syncopate::cli {
namespace {

/// Text as roff prints it: hyphens that can be copied, nothing taken for a request.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
  }
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

void add_entry(const std::string& head, const std::string& text, std::string& page) {
  page += fmt::format(".TP\n{}\n{}\n", head, escaped(text));
}

std::string head_of(const OptionText& option) {
  const std::string letter = option.letter.empty() ? "" : bold(option.letter) + ", ";
  return letter + bold(option.name) + (option.type.empty() ? "" : " " + italic(option.type));
}

void add_examples(const std::vector<std::string>& examples, std::string& page) {
  for (const std::string& example : examples) page += fmt::format(".PP\n.nf\n{}\n.fi\n", escaped(example));
}

void add_command(const CommandText& command, std::string& page) {
  page += fmt::format(".SH {}\n", escaped("syncopate " + command.name));
  page += escaped(command.purpose + ".") + "\n";
  page += fmt::format(".PP\n{}\n", bold(usage_of(command)));
  for (const OptionText& place : command.places) add_entry(italic(place.name), place.sentence(), page);
  for (const OptionGroup& group : command.groups) {
    page += fmt::format(".SS {}\n", escaped(group.title));
    for (const OptionText& option : group.options) add_entry(head_of(option), option.sentence(), page);
  }
  if (!command.settings.empty()) page += ".SS Settings for \\-\\-set and experiment files\n";
  for (const OptionText& setting : command.settings) add_entry(head_of(setting), setting.sentence(), page);
  if (!command.notes.empty() || !command.examples.empty()) page += ".SS Notes and examples\n";
  for (const std::string& note : command.notes)
    page += fmt::format("{}\n.br\n", escaped(note.substr(note.find_first_not_of(' '))));
  add_examples(command.examples, page);
}

}  // namespace

std::string manual(const Program& program) {
  const CommandText own = describe(program, program.app);
  const std::vector<CommandText> commands = describe_commands(program);
  std::string page = fmt::format(
      ".TH SYNCOPATE 1 \"\" \"syncopate {}\" \"User commands\"\n.SH NAME\nsyncopate \\- train models on "
      "several "
      "workers under any strategy of synchronisation\n.SH SYNOPSIS\n{}\n.SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      SYNCOPATE_VERSION, bold(usage_of(own)), escaped(own.purpose + "."));
  for (const CommandText& command : commands) add_entry(bold(command.name), command.purpose + ".", page);
  page += ".SH OPTIONS\n";
  for (const OptionGroup& group : own.groups) {
    for (const OptionText& option : group.options) add_entry(head_of(option), option.sentence(), page);
  }
  for (const CommandText& command : commands) add_command(command, page);
  page += ".SH EXIT STATUS\n";
  for (const std::string& note : own.notes) page += escaped(note) + "\n";
  page += ".SH EXAMPLES\n";
  add_examples(own.examples, page);
  return page;
}

Command add_manual(Program& program) {
  CLI::App* app = program.app.add_subcommand("manual", "Print the manual page (roff)");
  program.examples[app] = {"syncopate manual > syncopate.1 && man -l syncopate.1"};
  return [&program] {
    fmt::print("{}", manual(program));
    return 0;
  };
}

}  // namespace syncopate::cli
