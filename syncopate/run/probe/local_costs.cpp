#include "syncopate/run/probe/local_costs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <future>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/codec/codec.h"
#include "syncopate/comm/open.h"
#include "syncopate/lifeline/proof.h"
#include "syncopate/lifeline/server.h"
#include "syncopate/parallel/make.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::run {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kElements = int64_t{4} << 20;  ///< 16 MiB of floats: beyond the caches of one core
constexpr double kBytes = 4.0 * static_cast<double>(kElements);

/// Seconds of the quickest of several.
template <typename Body>
double quickest(int times, const Body& body) {
  double least = 1e9;
  for (int k = 0; k < times; ++k) {
    const Stopwatch watch;
    body();
    least = std::min(least, watch.seconds());
  }
  return least;
}

/// Two ranks that meet on loopback; what rank 0 measures.
void exchange_with_oneself(int rank, int port, const std::string& key, sim::LocalCosts& costs) {
  comm::CommOptions options;
  options.rank = rank;
  options.size = 2;
  options.backend = "gloo";  // what crosses networks
  options.rendezvous.kind = lifeline::RendezvousPoint::Kind::kServed;
  options.rendezvous.address = {"127.0.0.1", port};
  options.rendezvous.key = key;
  comm::Membership membership = comm::open(options);
  comm::Group& group = *membership.group;
  const at::Tensor one = at::ones({1}), many = at::ones({kElements});
  for (int k = 0; k < 10; ++k) group.all_reduce(one, comm::Op::kSum).wait();
  std::vector<double> operations;
  for (int k = 0; k < 100; ++k) {
    const Stopwatch watch;
    group.all_reduce(one, comm::Op::kSum).wait();
    operations.push_back(watch.seconds());
  }
  std::nth_element(operations.begin(), operations.begin() + 50, operations.end());
  const auto across = [&] {
    if (rank == 0) {
      group.send(many, 1, 7).wait();
      group.receive(one, 1, 8).wait();
    } else {
      group.receive(many, 0, 7).wait();
      group.send(one, 0, 8).wait();
    }
  };
  const double seconds = quickest(6, across);
  if (rank == 0) {
    costs.operation_s = operations[50];
    costs.loopback_gbyte = kBytes / seconds / 1e9;
  }
  group.barrier();
  membership.leave();
}

/// Of a codec of elements: packing with what it keeps, and adding what was unpacked.
sim::CodecSpeed speed_of_elements(const std::string& name, const std::string& element_codec,
                                  const CodecSpeedOptions& options) {
  const auto codec = codec::make_codec({.name = element_codec, .ratio = options.ratio});
  const auto count = static_cast<size_t>(options.elements);
  std::vector<float> numbers(count), rest(count, 0.0f), sum(count, 0.0f);
  Rng rng(17);
  for (float& each : numbers) each = static_cast<float>(rng.uniform()) - 0.5f;
  std::vector<uint8_t> packed(static_cast<size_t>(codec->packed_bytes(options.elements)));
  const bool feeds_back = parallel::feeds_back(name);
  const double n = static_cast<double>(options.elements);
  return {.name = name,
          .encode_s = quickest(3,
                               [&] {
                                 if (feeds_back) {
                                   codec->encode_with_rest(numbers, rest, packed);
                                 } else {
                                   codec->encode(numbers, packed);
                                 }
                               }) /
                      n,
          .decode_s = quickest(3, [&] { codec->decode_add(packed, sum); }) / n};
}

/// PowerSGD's products: P = M Q and Q = M' P, what it keeps, and P Q'.
sim::CodecSpeed speed_of_low_rank(const std::string& name, const CodecSpeedOptions& options) {
  const at::NoGradGuard no_grad;
  const int64_t columns = 1024, rows = std::max<int64_t>(1, options.elements / columns);
  const at::Tensor matrix = at::rand({rows, columns}), rest = at::zeros({rows, columns});
  const at::Tensor q = at::rand({options.rank, columns}), p = at::rand({options.rank, rows});
  const double n = static_cast<double>(rows * columns);
  return {.name = name,
          .encode_s = quickest(3,
                               [&] {
                                 matrix.add_(rest);
                                 const at::Tensor left = at::mm(q, matrix.t());
                                 const at::Tensor right = at::mm(p, matrix);
                                 rest.addmm_(left.t(), right, 0, 1e-9);
                               }) /
                      n,
          .decode_s = quickest(3, [&] { at::mm(p.t(), q); }) / n};
}

}  // namespace

sim::LocalCosts measure_local_costs() {
  sim::LocalCosts costs;
  lifeline::LifelineServerOptions where;
  where.size = 2;
  where.key = lifeline::random_key();
  lifeline::LifelineServer server(where);
  auto other =
      std::async(std::launch::async, [&] { exchange_with_oneself(1, server.port(), where.key, costs); });
  exchange_with_oneself(0, server.port(), where.key, costs);
  other.get();
  server.close();
  const at::Tensor a = at::ones({kElements}), b = at::ones({kElements});
  costs.reduce_gbyte = kBytes / quickest(5, [&] { a.add_(b); }) / 1e9;
  costs.copy_gbyte = kBytes / quickest(5, [&] { a.copy_(b); }) / 1e9;
  return costs;
}

std::vector<sim::CodecSpeed> codec_speeds(const std::vector<std::string>& names,
                                          const CodecSpeedOptions& options) {
  std::vector<sim::CodecSpeed> speeds;
  for (const std::string& name : names) {
    switch (spec::codec_info(name).packing) {
      case spec::Packing::kNone:
        speeds.push_back({.name = name});
        break;
      case spec::Packing::kElements:
        speeds.push_back(speed_of_elements(name, name, options));
        break;
      case spec::Packing::kSigns:
        speeds.push_back(speed_of_elements(name, "sign", options));
        break;
      case spec::Packing::kLowRank:
        speeds.push_back(speed_of_low_rank(name, options));
        break;
    }
  }
  return speeds;
}

}  // namespace syncopate::run
