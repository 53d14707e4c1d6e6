#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/cli/commands.h"
#include "tests/support/support.h"

namespace syncopate::cli {
namespace {

/// What `syncopate compare` with these words complains of.
std::string complaint(std::vector<std::string> words) {
  Program program{.app = CLI::App{kPurpose, "syncopate"}};
  const auto commands = add_commands(program, nullptr);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  words.emplace_back("compare");
  program.app.parse(words);
  try {
    for (const auto& [app, command] : commands) {
      if (app->get_name() == "compare") command();
    }
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Compare, NamesThatAreNotUtf8AreToldAsWhatTheyAre) {
  const test::TempDir folder;
  const std::string text = "[[row]]\nstrategy=\"single\"\n",
                    bad = folder /
                          "b\xff"
                          "d.toml",
                    good = folder / "good.toml";
  test::write_text(bad, text);
  test::write_text(good, text);
  const std::string of_file = complaint({bad}), of_out = complaint({good, "--out",
                                                                    folder / "b\xff"
                                                                             "d"});
  EXPECT_EQ(of_file.find("--out \""), std::string::npos) << "nobody gave one: " << of_file;
  EXPECT_NE(of_file.find("the name of " + bad + " is not UTF-8"), std::string::npos) << of_file;
  EXPECT_NE(of_out.find("--out \""), std::string::npos) << of_out;
}

}  // namespace
}  // namespace syncopate::cli
