#include "syncopate/cli/help.h"

#include <gtest/gtest.h>

#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/fields.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/completion.h"
#include "syncopate/cli/manual.h"
#include "syncopate/spec/run_spec.h"
#include "tests/support/support.h"

namespace syncopate::cli {
namespace {

struct WholeProgram {
  Program program{.app = CLI::App{kPurpose, "syncopate"}};
  std::vector<std::pair<const CLI::App*, Command>> commands = add_commands(program, nullptr);

  CommandText text(const std::string& name) const {
    for (const CommandText& command : describe_commands(program)) {
      if (command.name == name) return command;
    }
    ADD_FAILURE() << name;
    return {};
  }
};

std::vector<std::string> titles(const CommandText& command) {
  std::vector<std::string> titles;
  for (const OptionGroup& group : command.groups) titles.push_back(group.title);
  return titles;
}

TEST(Help, TrainHasItsOptionsInGroups) {
  const CommandText train = WholeProgram().text("train");
  EXPECT_EQ(titles(train), (std::vector<std::string>{"Task", "Model", "Training", "Synchronising", "Pipeline",
                                                     "Workers", "Output", "Options"}));
  EXPECT_EQ(train.examples.size(), 2u);
}

TEST(Help, OptionsSayWhatTheyTakeAndTheirDefault) {
  const std::string help = help_text(WholeProgram().text("train"), 80, false);
  for (const char* line :
       {"  --task TASK ", "  --lr FLOAT ", "  --steps INT ", "  --vocab FILE ", "  --out FOLDER ", "[auto]",
        "[0.0005]", "[supersense]", "  --balance  ", "--master HOST:PORT"}) {
    EXPECT_NE(help.find(line), std::string::npos) << line << "\n" << help;
  }
  std::set<std::string> zeros;
  for (const OptionGroup& group : WholeProgram().text("train").groups) {
    for (const OptionText& option : group.options) {
      if (option.preset == "0") zeros.insert(option.name);
    }
  }
  EXPECT_EQ(zeros, (std::set<std::string>{"--seed", "--label-smoothing"})) << "and no 0 that means auto";
}

TEST(Help, SettingsWithoutAFlagAreUnderHelpAllAlone) {
  const CommandText train = WholeProgram().text("train");
  const std::string help = help_text(train, 80, false), all = help_text(train, 80, true);
  EXPECT_EQ(help.find("strategy.outer_lr"), std::string::npos);
  EXPECT_NE(help.find("--help-all"), std::string::npos);
  spec::RunSpec spec;
  const Fields fields = spec.fields();
  for (const Fields::Field& field : fields.all())
    EXPECT_NE(all.find("  " + field.name + " "), std::string::npos) << field.name;
}

TEST(Help, FitsTheTerminal) {
  const WholeProgram whole;
  std::vector<CommandText> commands = describe_commands(whole.program);
  std::set<bool> seen;
  for (const size_t columns : {size_t{40}, size_t{80}, size_t{100}}) {
    std::string all;
    const auto add = [&](const std::string& text) {
      // Commands to copy are broken before options alone, and take more on a narrow terminal.
      all += columns < 80 ? text.substr(0, text.find("\nExample")) : text;
    };
    add(program_help(whole.program, columns, false));
    for (const CommandText& command : commands) add(help_text(command, columns, true));
    for (const std::string_view line : split(all, '\n')) {
      // A word that is longer than the line cannot be broken, nor an option and what it takes.
      const std::string_view words = trim(line);
      const bool one = words.find(' ') == std::string_view::npos || words.starts_with("comm.fault ");
      EXPECT_TRUE(columns_of(line) <= columns || one) << columns << ": " << line;
      seen.insert(columns_of(line) > 40);
    }
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(Help, UsageSaysWhatMayBeLeftOut) {
  EXPECT_EQ(usage_of(WholeProgram().text("compare")), "syncopate compare FILE [options]");
  EXPECT_EQ(usage_of(WholeProgram().text("tokenize")), "syncopate tokenize [FILE] [options]");
}

TEST(Help, ThereIsAnExampleForEveryCommand) {
  for (const CommandText& command : describe_commands(WholeProgram().program))
    EXPECT_FALSE(command.examples.empty()) << command.name;
}

TEST(Manual, DescribesEveryCommandAndSetting) {
  const WholeProgram whole;
  const std::string page = manual(whole.program);
  for (const CommandText& command : describe_commands(whole.program))
    EXPECT_NE(page.find(".SH syncopate " + command.name + "\n"), std::string::npos) << command.name;
  EXPECT_NE(page.find("\\fBstrategy.outer_lr\\fR \\fIFLOAT\\fR"), std::string::npos);
  EXPECT_NE(page.find("\\fB\\-\\-task\\fR \\fITASK\\fR"), std::string::npos);
  for (const std::string_view line : split(page, '\n')) EXPECT_FALSE(line.starts_with("'")) << line;
}

bool there_is(const std::string& program) {
  return test::run_command({"/bin/sh", "-c", "command -v " + program + " > /dev/null"}).exit_code == 0;
}

TEST(Manual, RoffHasNothingToComplainAbout) {
  if (!there_is("groff")) GTEST_SKIP() << "needs groff";
  const test::TempDir folder;
  test::write_text(folder / "syncopate.1", manual(WholeProgram().program));
  const std::string page = (folder / "syncopate.1").string();
  const test::CommandResult checked = test::run_command({"groff", "-man", "-ww", "-Tutf8", "-z", page});
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_EQ(checked.err, "");
}

/// What bash offers after these words, the last of which is being typed.
std::set<std::string> offered(const std::string& script, const std::vector<std::string>& words) {
  std::string line = "source '" + script + "'; compopt() { :; }; COMP_WORDS=(";
  for (const std::string& word : words) line += shell_word(word) + " ";
  line += "); COMP_CWORD=" + std::to_string(words.size() - 1) +
          "; _syncopate; printf '%s\\n' \"${COMPREPLY[@]}\"";
  const test::CommandResult result = test::run_command({"/bin/bash", "-c", line});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  std::set<std::string> found;
  for (const std::string_view each : split(result.out, '\n')) {
    if (!each.empty()) found.emplace(each);
  }
  return found;
}

TEST(Completion, BashOffersCommandsOptionsAndValues) {
  const test::TempDir folder;
  const std::string script = (folder / "completion").string();
  test::write_text(script, bash_completion(WholeProgram().program));
  EXPECT_EQ(test::run_command({"/bin/bash", "-n", script}).exit_code, 0);
  using Set = std::set<std::string>;
  EXPECT_EQ(offered(script, {"syncopate", "tr"}), Set{"train"});
  EXPECT_EQ(offered(script, {"syncopate", "train", "--strategy", "d"}),
            (Set{"ddp", "data-parallel", "diloco"}));
  EXPECT_EQ(offered(script, {"syncopate", "train", "--wo"}), (Set{"--workers", "--world-size"}));
  EXPECT_EQ(offered(script, {"syncopate", "evaluate", "--wo"}), Set{}) << "not its options";
  EXPECT_EQ(offered(script, {"syncopate", "train", "--set", "strategy.outer_l"}), Set{"strategy.outer_lr="});
  EXPECT_EQ(offered(script, {"syncopate", "help", "ev"}), Set{"evaluate"});
  EXPECT_EQ(offered(script, {"syncopate", "completion", "z"}), Set{"zsh"});
  const std::string start = (folder / "com").string();
  EXPECT_EQ(offered(script, {"syncopate", "train", "--data", start}), Set{script}) << "a file";
  EXPECT_EQ(offered(script, {"syncopate", "train", "--validation", start}), Set{script}) << "or a share";
  EXPECT_EQ(offered(script, {"syncopate", "train", "--lr", start}), Set{}) << "a number is no file";
}

/// Lets a shell read a script without running it.
void expect_readable(const std::string& shell, const std::string& script) {
  const test::TempDir folder;
  test::write_text(folder / "completion", script);
  const test::CommandResult read = test::run_command({shell, "-n", (folder / "completion").string()});
  EXPECT_EQ(read.exit_code, 0);
  EXPECT_EQ(read.err, "");
  test::write_text(folder / "torn", script + "\nif '\n");
  EXPECT_NE(test::run_command({shell, "-n", (folder / "torn").string()}).exit_code, 0) << "the foil";
}

TEST(Completion, ZshReadsItsScript) {
  if (!there_is("zsh")) GTEST_SKIP() << "needs zsh";
  expect_readable("zsh", zsh_completion(WholeProgram().program));
}

TEST(Completion, FishReadsItsScript) {
  if (!there_is("fish")) GTEST_SKIP() << "needs fish";
  expect_readable("fish", fish_completion(WholeProgram().program));
}

TEST(Completion, EveryShellKnowsEveryOption) {
  const WholeProgram whole;
  const std::string zsh = zsh_completion(whole.program), fish = fish_completion(whole.program);
  for (const OptionGroup& group : whole.text("train").groups) {
    for (const OptionText& option : group.options) {
      EXPECT_NE(zsh.find("'*" + option.name + "["), std::string::npos) << option.name;
      EXPECT_NE(fish.find(" -l " + option.name.substr(2) + " "), std::string::npos) << option.name;
    }
  }
}

}  // namespace
}  // namespace syncopate::cli
