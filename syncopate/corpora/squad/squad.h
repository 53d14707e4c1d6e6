#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// A gold answer: a stretch of the context.
struct Answer {
  std::string text;
  int64_t start = 0;  ///< in code points of the context, as SQuAD counts
  bool operator==(const Answer&) const = default;
};

struct Question {
  std::string id;
  std::string question;
  int64_t context = 0;  ///< its number among the task's contexts
  std::vector<Answer> answers{};
  bool impossible = false;  ///< v2.0: the context has no answer
  bool operator==(const Question&) const = default;
};

/// Questions whose answer is a stretch of a paragraph. In their file's order.
struct SquadTask {
  std::string name;
  std::vector<std::string> contexts;  ///< of both splits, each paragraph once
  std::vector<Question> train;  ///< empty unless loaded for training; every first answer is in its place
  std::vector<Question> test;
  std::vector<std::string> notes;  ///< sentences for the user: what was repaired or skipped
};

/// SQuAD v1.1 or v2.0. `path`: a folder with a train*.json and a dev*.json as find_splits finds them, plain
/// or with .gz, or one file: used whole as the test split, or, for training, the questions of a tenth of its
/// paragraphs, by their hash, held out. An answer that is not at its offset is put where its text is if that
/// occurs once; else its question is left out of training, while scores still count it. To predict, answers
/// need not be there. Throws ConfigError without a path, DataError that names article, paragraph and
/// question.
SquadTask load_squad(const std::filesystem::path& path, Purpose purpose,
                     const std::string& encoding = "utf-8");

/// Whether a question of these has no answer by its nature: then answers may be empty (v2.0's rules).
bool has_impossible(const std::vector<Question>& questions);

/// Writes questions as a SQuAD file, one article `title`, a paragraph per context. Throws DataError.
void write_squad(const std::filesystem::path& path, const std::string& title,
                 const std::vector<std::string>& contexts, const std::vector<Question>& questions);

/// The byte at which code point `start` begins (the size, for the one behind the last); -1 outside the text.
int64_t byte_of_code_point(std::string_view text, int64_t start);
int64_t code_points(std::string_view text);  ///< how many there are

}  // namespace syncopate::corpora
