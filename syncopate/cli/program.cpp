#include "syncopate/cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace syncopate::cli {
namespace {

template <typename Key, typename Value>
Value of(const std::map<const Key*, Value>& map, const Key* key) {
  const auto found = map.find(key);
  return found == map.end() ? Value() : found->second;
}

OptionText text_of(const Program& program, const CLI::Option& option) {
  OptionText text;
  text.help = option.get_description();
  text.choices = of(program.choices, &option);
  text.preset = option.get_default_str();
  if (!option.nonpositional()) {
    text.name = option.get_type_name();
    text.required = option.get_required();
    return text;
  }
  text.name = "--" + option.get_lnames().front();
  if (!option.get_snames().empty()) text.letter = "-" + option.get_snames().front();
  if (option.get_items_expected_max() > 0) text.type = option.get_type_name();
  return text;
}

}  // namespace

std::string OptionText::sentence() const {
  // "what to learn (default: as the run)": what there is comes before what is between the brackets.
  const size_t aside = help.ends_with(')') ? help.rfind(" (") : std::string::npos;
  std::string text = help.substr(0, aside);
  if (!choices.empty()) text += fmt::format(": {}", fmt::join(choices, ", "));
  if (aside != std::string::npos) text += help.substr(aside);
  if (!preset.empty()) text += fmt::format(" [{}]", preset);
  return text;
}

CommandText describe(const Program& program, const CLI::App& command) {
  CommandText text;
  text.name = &command == &program.app ? "" : command.get_name();
  text.purpose = command.get_description();
  text.settings = of(program.settings, &command);
  text.notes = of(program.notes, &command);
  text.examples = of(program.examples, &command);
  for (const CLI::Option* option : command.get_options()) {
    if (!option->nonpositional()) {
      text.places.push_back(text_of(program, *option));
      continue;
    }
    const std::string& title = option->get_group();
    auto group = std::find_if(text.groups.begin(), text.groups.end(),
                              [&](const OptionGroup& each) { return each.title == title; });
    if (group == text.groups.end()) group = text.groups.insert(group, {title, {}});
    group->options.push_back(text_of(program, *option));
  }
  // What CLI11 adds first, --help, is the least of what a command is asked for.
  std::stable_partition(text.groups.begin(), text.groups.end(),
                        [](const OptionGroup& group) { return group.title != "Options"; });
  return text;
}

std::vector<CommandText> describe_commands(const Program& program) {
  std::vector<CommandText> texts;
  for (const CLI::App* command : program.app.get_subcommands([](const CLI::App*) { return true; }))
    texts.push_back(describe(program, *command));
  return texts;
}

std::string usage_of(const CommandText& command) {
  if (command.name.empty()) return "syncopate COMMAND [options]";
  std::string usage = "syncopate " + command.name;
  for (const OptionText& place : command.places)
    usage += place.required ? " " + place.name : " [" + place.name + "]";
  return usage + " [options]";
}

}  // namespace syncopate::cli
