#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "syncopate/base/error.h"
#include "syncopate/cli/commands.h"
#include "syncopate/text/wordpiece.h"

namespace syncopate::cli {
namespace {

struct TokenizeArguments {
  std::string vocab, file;
  bool jsonl = false, no_special = false;
  int64_t max_length = 0;
};

struct Texts {
  std::string a;
  std::optional<std::string> b;
};

Texts parse_line(const TokenizeArguments& arguments, std::string line, int64_t number) {
  if (!arguments.jsonl) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return {line, std::nullopt};
  }
  const auto json = nlohmann::json::parse(line, nullptr, false);
  const bool pair = json.is_object() && json.contains("a") && json.contains("b");
  if (!pair && !(json.is_object() && json.contains("text") && json["text"].is_string())) {
    throw DataError("{}:{}: expected a JSON object with \"text\", or with \"a\" and \"b\"",
                    arguments.file.empty() ? "standard input" : arguments.file, number);
  }
  if (!pair) return {json["text"].get<std::string>(), std::nullopt};
  if (!json["a"].is_string() || !json["b"].is_string()) {
    throw DataError("{}:{}: \"a\" and \"b\" must be texts",
                    arguments.file.empty() ? "standard input" : arguments.file, number);
  }
  return {json["a"].get<std::string>(), json["b"].get<std::string>()};
}

int tokenize(const TokenizeArguments& arguments) {
  if (arguments.max_length < 0)
    throw ConfigError("--max-length must be 1 or more, got {}", arguments.max_length);
  const text::WordPiece tokenizer = text::WordPiece::load(arguments.vocab);
  std::ifstream file;
  if (!arguments.file.empty()) {
    file.open(arguments.file, std::ios::binary);
    if (!file || std::filesystem::is_directory(arguments.file))
      throw DataError("cannot read {}; check the path", arguments.file);
  }
  std::istream& input = arguments.file.empty() ? std::cin : file;
  int64_t number = 0;
  for (std::string line; std::getline(input, line);) {
    const Texts texts = parse_line(arguments, line, ++number);
    const text::Encoding encoding =
        tokenizer.encode(texts.a, texts.b, arguments.max_length, !arguments.no_special);
    nlohmann::ordered_json out{
        {"ids", encoding.ids}, {"types", encoding.types}, {"tokens", nlohmann::json::array()}};
    for (const int32_t id : encoding.ids) out["tokens"].push_back(tokenizer.token(id));
    fmt::print("{}\n", out.dump());
  }
  if (input.bad())
    throw DataError("cannot read {} to its end", arguments.file.empty() ? "standard input" : arguments.file);
  return 0;
}

}  // namespace

Command add_tokenize(Program& program) {
  CLI::App* app = program.app.add_subcommand("tokenize", "Print the tokens of texts");
  auto arguments = std::make_shared<TokenizeArguments>();
  app->add_option("file", arguments->file, "file with one text per line (default: standard input)")
      ->type_name("FILE");
  app->add_option("--vocab", arguments->vocab, "a vocab.txt or tokenizer.json file, or a folder with one")
      ->required()
      ->group("Texts")
      ->type_name("PATH");
  app->add_flag("--jsonl", arguments->jsonl,
                "each line is JSON with \"text\", or with \"a\" and \"b\" for a pair")
      ->group("Texts");
  app->add_option("--max-length", arguments->max_length,
                  "truncate to this many tokens, special tokens included (default: no limit)")
      ->group("Texts")
      ->type_name("INT");
  app->add_flag("--no-special", arguments->no_special, "do not add [CLS] and [SEP]")->group("Texts");
  program.notes[app] = {"Prints one line per text: {\"ids\": [...], \"types\": [...], \"tokens\": [...]}."};
  program.examples[app] = {"echo 'Hello, world!' | syncopate tokenize --vocab runs/my-run/model/vocab.txt"};
  return [arguments] { return tokenize(*arguments); };
}

}  // namespace syncopate::cli
