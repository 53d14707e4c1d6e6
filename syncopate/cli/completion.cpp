#include "syncopate/cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"

namespace syncopate::cli {
namespace {

/// What can follow an option, or stand in a place.
struct Values {
  std::vector<std::string> words;
  bool files = false;
  bool begin = false;  ///< the words are beginnings: no space comes after them
};

Values values_of(const CommandText& command, const OptionText& option,
                 const std::vector<CommandText>& commands) {
  Values values{.words = option.choices};
  for (const char* type : {"PATH", "FOLDER", "MODEL"}) values.files = values.files || option.type == type;
  values.files = values.files || option.type.find("FILE") != std::string::npos;  // SHARE|FILE
  if (option.type.empty()) values.files = option.name == "FILE";
  if (option.name == "COMMAND") {
    for (const CommandText& each : commands) values.words.push_back(each.name);
  }
  if (option.name == "--set") {
    values.begin = true;
    for (const OptionText& setting : command.settings) values.words.push_back(setting.name + "=");
  }
  return values;
}

template <typename Visit>
void for_each_option(const CommandText& command, const Visit& visit) {
  for (const OptionGroup& group : command.groups) {
    for (const OptionText& option : group.options) visit(option);
  }
}

std::string names_of_options(const CommandText& command) {
  std::vector<std::string> names;
  for_each_option(command, [&](const OptionText& option) { names.push_back(option.name); });
  return fmt::format("{}", fmt::join(names, " "));
}

std::string names_of(const std::vector<CommandText>& commands) {
  std::vector<std::string> names;
  for (const CommandText& command : commands) names.push_back(command.name);
  return fmt::format("{}", fmt::join(names, " "));
}

/// As it stands between a shell's single quotes; zsh has `special` characters there.
std::string escaped(const std::string& text, std::string_view special) {
  std::string out;
  for (const char letter : text) {
    if (special.find(letter) != std::string_view::npos) out += '\\';
    out += letter == '\'' ? "'\\''" : std::string(1, letter);
  }
  return out;
}

std::string quoted(const std::string& text) { return "'" + escaped(text, "\\") + "'"; }

std::string bash_reply(const Values& values) {
  std::string reply;
  if (!values.words.empty()) {
    reply += fmt::format(" COMPREPLY+=($(compgen -W '{}' -- \"$current\"));", fmt::join(values.words, " "));
  }
  if (values.begin) reply += " compopt -o nospace;";
  if (values.files) reply += " _syncopate_files \"$current\";";
  return reply;
}

}  // namespace

std::string bash_completion(const Program& program) {
  const std::vector<CommandText> commands = describe_commands(program);
  const CommandText own = describe(program, program.app);
  std::string after_options, options, places;
  for (const CommandText& command : commands) {
    for_each_option(command, [&](const OptionText& option) {
      if (option.type.empty()) return;
      after_options += fmt::format("    '{} {}'){} return ;;\n", command.name, option.name,
                                   bash_reply(values_of(command, option, commands)));
    });
    options += fmt::format("      {}) words='{}' ;;\n", command.name, names_of_options(command));
    for (const OptionText& place : command.places) {
      places += fmt::format("    {}){} ;;\n", command.name, bash_reply(values_of(command, place, commands)));
    }
  }
  return fmt::format(R"(# Completion of syncopate for bash; made by: syncopate completion bash
_syncopate_files() {{
  compopt -o filenames
  mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$1")
}}
_syncopate() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}" words
  local IFS=$' \t\n'
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} {}' -- "$current"))
    return
  fi
  case "$command $previous" in
{}  esac
  if [[ "$current" == -* ]]; then
    case "$command" in
{}    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    return
  fi
  case "$command" in
{}  esac
}}
complete -F _syncopate syncopate
)",
                     names_of(commands), names_of_options(own), after_options, options, places);
}

std::string zsh_completion(const Program& program) {
  const std::vector<CommandText> commands = describe_commands(program);
  const auto action = [&](const CommandText& command, const OptionText& option) {
    const Values values = values_of(command, option, commands);
    const std::string words = fmt::format("{}", fmt::join(values.words, " "));
    if (values.begin) return fmt::format("{{compadd -S \"\" -- {}}}", words);
    if (values.files && !values.words.empty()) return fmt::format("{{compadd -- {}; _files}}", words);
    if (values.files) return std::string("_files");
    return values.words.empty() ? std::string(" ") : fmt::format("({})", words);
  };
  std::string names, cases;
  for (const CommandText& command : commands) {
    names += fmt::format("    {}\n", quoted(command.name + ":" + command.purpose));
    cases += fmt::format("    {})\n      _arguments", command.name);
    for_each_option(command, [&](const OptionText& option) {
      std::string entry = fmt::format("*{}[{}]", option.name, escaped(option.help, "[]:\\"));
      if (!option.type.empty())
        entry += fmt::format(":{}:{}", escaped(option.type, ":\\"), action(command, option));
      cases += fmt::format(" \\\n        '{}'", entry);
    });
    for (const OptionText& place : command.places)
      cases += fmt::format(" \\\n        '1:{}:{}'", place.name, action(command, place));
    cases += "\n      ;;\n";
  }
  return fmt::format(R"(#compdef syncopate
# Completion of syncopate for zsh; made by: syncopate completion zsh
_syncopate() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
if [ "$funcstack[1]" = _syncopate ]; then
  _syncopate "$@"
else
  compdef _syncopate syncopate
fi
)",
                     names, cases);
}

std::string fish_completion(const Program& program) {
  const std::vector<CommandText> commands = describe_commands(program);
  std::string text =
      "# Completion of syncopate for fish; made by: syncopate completion fish\n"
      "complete -c syncopate -f\n";
  for (const CommandText& command : commands) {
    text += fmt::format("complete -c syncopate -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        quoted(command.purpose));
  }
  for (const CommandText& command : commands) {
    const std::string start =
        fmt::format("complete -c syncopate -n '__fish_seen_subcommand_from {}'", command.name);
    const auto add = [&](const OptionText& option, std::string line) {
      const Values values = values_of(command, option, commands);
      if (!values.words.empty())
        line += fmt::format(" -a {}", quoted(fmt::format("{}", fmt::join(values.words, " "))));
      if (!option.type.empty()) line += values.files ? " -r -F" : " -x";
      if (option.type.empty() && values.files) line += " -F";
      text += line + "\n";
    };
    for_each_option(command, [&](const OptionText& option) {
      add(option, fmt::format("{} -l {} -d {}", start, option.name.substr(2), quoted(option.help)));
    });
    for (const OptionText& place : command.places) add(place, start);
  }
  return text;
}

Command add_completion(Program& program) {
  CLI::App* app =
      program.app.add_subcommand("completion", "Print a script that completes commands in a shell");
  auto shell = std::make_shared<std::string>();
  CLI::Option* option = app->add_option("shell", *shell, "bash, zsh or fish")->required()->type_name("SHELL");
  program.choices[option] = {"bash", "zsh", "fish"};
  program.notes[app] = {
      "For bash: syncopate completion bash > ~/.local/share/bash-completion/completions/syncopate",
      "For zsh, put it into a folder of $fpath: syncopate completion zsh > ~/.zfunc/_syncopate",
      "For fish: syncopate completion fish > ~/.config/fish/completions/syncopate.fish"};
  program.examples[app] = {"source <(syncopate completion bash)"};
  return [&program, shell] {
    if (*shell == "bash") {
      fmt::print("{}", bash_completion(program));
    } else if (*shell == "zsh") {
      fmt::print("{}", zsh_completion(program));
    } else if (*shell == "fish") {
      fmt::print("{}", fish_completion(program));
    } else {
      throw ConfigError("there is no completion for \"{}\"{}", *shell,
                        suggestion(*shell, {"bash", "zsh", "fish"}));
    }
    return 0;
  };
}

}  // namespace syncopate::cli
