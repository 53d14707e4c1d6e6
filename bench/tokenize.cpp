// How fast do texts become numbers, on one core? Prints megabytes per second of each tokenizer on the files
// given, repeated until 100 MB were read.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/text/bpe.h"
#include "syncopate/text/wordpiece.h"

namespace syncopate::bench {
namespace {

constexpr double kBytes = 1e8;

template <typename Encode>
void measure(const std::string& name, const std::vector<std::string_view>& lines, const Encode& encode) {
  double bytes = 0;
  int64_t pieces = 0;
  const Stopwatch watch;
  while (bytes < kBytes) {
    for (const std::string_view line : lines) {
      pieces += encode(line);
      bytes += static_cast<double>(line.size() + 1);
      if (bytes >= kBytes) break;
    }
  }
  fmt::print("{}: {:.1f} MB/s ({:.0f} MB, {:.1f} million pieces)\n", name, bytes / 1e6 / watch.seconds(),
             bytes / 1e6, static_cast<double>(pieces) / 1e6);
}

int run(const std::string& vocab, const std::string& bpe, const std::string& folder) {
  std::string text;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) text += read_file(file, "text");
  const std::vector<std::string_view> lines = split(text, '\n');
  const text::WordPiece pieces = text::WordPiece::load(vocab);
  measure("WordPiece", lines, [&](std::string_view line) { return pieces.encode(line).size(); });
  const text::ByteBpe bytes = text::ByteBpe::load(bpe);
  text::ByteBpe::Memory memory;
  std::vector<int32_t> into;
  measure("byte-level BPE", lines, [&](std::string_view line) {
    into.clear();
    bytes.encode(line, memory, into);
    return into.size();
  });
  return 0;
}

}  // namespace
}  // namespace syncopate::bench

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: tokenize VOCAB.TXT BPE_FOLDER FOLDER_OF_TEXTS\n");
    return 2;
  }
  try {
    return syncopate::bench::run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
