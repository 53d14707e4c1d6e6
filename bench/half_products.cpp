// How fast are the products of a step in fp32 and in bf16? For the sizes of bert-mini and BERT-base with
// 1,024 tokens: forward, of the input and of the weight, in GFLOP/s, each the best of several in turns.
//   half_products [threads] [libtorch]     with "libtorch": its own products in bf16, too (Debian's 1.13 dies
//                                          of them on a CPU with AMX)
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "syncopate/base/clock.h"
#include "syncopate/nn/kernels/kernels.h"
#include "syncopate/nn/layers/product.h"
#include "syncopate/run/compute.h"

namespace syncopate::bench {
namespace {

using tensor::Precision;

struct Way {
  const char* name;
  Precision precision;
  at::ScalarType type;  ///< of what is multiplied
};

struct Operands {
  std::string name;
  at::Tensor a, b;
};

/// x w', g w and g' x of a layer from `in` to `out` columns.
std::array<Operands, 3> products_of(int64_t rows, int64_t in, int64_t out) {
  const at::Tensor x = at::randn({rows, in}), w = at::randn({out, in}), g = at::randn({rows, out});
  return {{{"forward", x, w.t()}, {"of the input", g, w}, {"of the weight", g.t(), x}}};
}

void measure(const Operands& operands, const std::vector<Way>& ways) {
  constexpr int kTurns = 15;
  std::vector<double> best(ways.size(), std::numeric_limits<double>::infinity());
  for (int turn = 0; turn < kTurns; ++turn) {
    for (size_t i = 0; i < ways.size(); ++i) {
      const at::Tensor a = operands.a.to(ways[i].type), b = operands.b.to(ways[i].type);
      const Stopwatch watch;
      nn::product(a, b, ways[i].precision);
      best[i] = std::min(best[i], watch.seconds());
    }
  }
  const int64_t M = operands.a.size(0), K = operands.a.size(1), N = operands.b.size(1);
  fmt::print("| {} x {} x {} | {} |", M, N, K, operands.name);
  for (const double seconds : best) fmt::print(" {:.0f} |", 2e-9 * static_cast<double>(M * N * K) / seconds);
  fmt::print(" {:.2f} |\n", best[1] / best[0]);
}

int run(int threads, bool libtorch) {
  const run::ComputeSetup compute = run::set_up_compute(threads);
  std::vector<Way> ways = {{"fp32", Precision::kFp32, at::kFloat},
                           {"bf16, ours", Precision::kBf16, at::kFloat}};
  if (libtorch) ways.push_back({"bf16, libtorch's", Precision::kFp32, at::kBFloat16});
  fmt::print("{}; kernels: {}\n\n| M x N x K | product |", compute.sentence(), nn::kernels::kernels().name);
  for (const Way& way : ways) fmt::print(" {} |", way.name);
  fmt::print(" time of ours / fp32 |\n|---|---|---|---|{}---|\n", libtorch ? "---|" : "");
  struct Layer {
    int64_t rows, in, out;
  };
  for (const auto& [rows, in, out] : {Layer{1024, 256, 768},
                                      {1024, 256, 256},
                                      {1024, 256, 1024},
                                      {1024, 1024, 256},
                                      {1024, 768, 2304},
                                      {1024, 768, 768},
                                      {1024, 768, 3072},
                                      {1024, 3072, 768}}) {
    for (const Operands& operands : products_of(rows, in, out)) measure(operands, ways);
  }
  return 0;
}

}  // namespace
}  // namespace syncopate::bench

int main(int argc, char** argv) {
  syncopate::run::prepare_process(argv);
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  return syncopate::bench::run(threads, argc > 2 && std::string_view(argv[2]) == "libtorch");
}
