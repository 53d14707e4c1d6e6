#include "syncopate/parallel/pipeline/cut.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::parallel {

void require_blocks(int64_t blocks, int64_t stages) {
  if (stages <= blocks) return;
  throw ConfigError("--stages {} are more than the {} block{} of the model; use fewer stages", stages, blocks,
                    blocks == 1 ? "" : "s");
}

std::vector<nn::LayerRange> layers_of_stages(const nn::Model& model, const std::vector<int64_t>& blocks) {
  const int64_t there = model.blocks(), asked = std::accumulate(blocks.begin(), blocks.end(), int64_t{0});
  require_blocks(there, static_cast<int64_t>(blocks.size()));
  if (asked != there) {
    throw ConfigError("pipeline.cut={} has {} blocks and the model has {}; give numbers with that sum",
                      cut_in_words(blocks), asked, there);
  }
  std::vector<nn::LayerRange> ranges;
  int next = 0;
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    const int first = next;
    next += static_cast<int>(blocks[stage]) + (stage == 0 ? 1 : 0);
    ranges.push_back({first, stage + 1 == blocks.size() ? model.depth() : next});
  }
  return ranges;
}

std::vector<int64_t> balanced_cut(const std::vector<double>& seconds, int stages) {
  std::vector<double> blocks(seconds.begin() + 1, seconds.end() - 1);
  check(!blocks.empty(), "a model has blocks");
  blocks.front() += seconds.front();
  blocks.back() += seconds.back();
  const auto count = static_cast<int64_t>(blocks.size());
  require_blocks(count, stages);
  std::vector<double> before(1, 0.0);
  for (const double each : blocks) before.push_back(before.back() + each);
  // slowest[s][b]: of the best cut of the first b blocks into s stages; from[s][b]: where its last one
  // begins.
  const auto S = static_cast<size_t>(stages), B = static_cast<size_t>(count);
  std::vector<std::vector<double>> slowest(
      S + 1, std::vector<double>(B + 1, std::numeric_limits<double>::infinity()));
  std::vector<std::vector<size_t>> from(S + 1, std::vector<size_t>(B + 1, 0));
  slowest[0][0] = 0;
  for (size_t s = 1; s <= S; ++s) {
    for (size_t b = s; b <= B; ++b) {
      for (size_t first = s - 1; first < b; ++first) {
        const double cost = std::max(slowest[s - 1][first], before[b] - before[first]);
        if (cost <= slowest[s][b]) {
          slowest[s][b] = cost;
          from[s][b] = first;
        }
      }
    }
  }
  std::vector<int64_t> cut(S);
  size_t end = B;
  for (size_t s = S; s > 0; --s) {
    cut[s - 1] = static_cast<int64_t>(end - from[s][end]);
    end = from[s][end];
  }
  return cut;
}

std::vector<int64_t> parse_cut(const std::string& text) {
  std::vector<int64_t> blocks;
  for (const std::string_view part : split(text, ',')) blocks.push_back(parse_integer(part).value_or(0));
  return blocks;
}

std::string cut_in_words(const std::vector<int64_t>& blocks) {
  return fmt::format("{}", fmt::join(blocks, ","));
}

}  // namespace syncopate::parallel
