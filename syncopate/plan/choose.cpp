#include "syncopate/plan/choose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/base/text.h"
#include "syncopate/plan/board.h"

namespace syncopate::plan {
namespace {

/// So few devices that every shape can be searched.
constexpr int kFew = 16;
constexpr double kGib = 1024.0 * 1024 * 1024;

std::vector<double> device_speed(const network::Topology& topology) {
  std::vector<double> speed;
  for (int device = 0; device < topology.devices(); ++device)
    speed.push_back(topology.hosts()[static_cast<size_t>(topology.host_of(device))].speed);
  return speed;
}

/// Everything that the shapes of one request have in common.
class Chooser {
 public:
  explicit Chooser(const Request& request)
      : request_(request),
        pairs_(request.published ? symmetric_pairs(request.topology) : directed_pairs(request.topology)),
        speed_(device_speed(request.topology)),
        memory_(device_memory(request)) {}

  Choice best() {
    std::vector<Shape> shapes = open_shapes();
    Choice best;
    if (shapes.size() == 1) {
      best = with_gradients(shapes.front(), request_.effort);
    } else {
      best = best_of(shapes);
    }
    return best;
  }

 private:
  struct Rough {
    Shape shape;
    double least = 0;  ///< no layout can be faster
    Choice choice{};
  };

  double budget(double share) const { return request_.effort.budget_s * share; }

  /// A problem with only the devices that can hold any of its stages; none where they are too few.
  std::optional<Problem> problem_of(const Shape& shape, const Coding& gradient,
                                    std::vector<int>* kept) const {
    const std::vector<Memory> needs = memory_of(request_.job, split_layers(request_.job, shape.stages),
                                                shape.replicas, shape.micro_batches);
    double most = 0;
    for (const Memory& each : needs) most = std::max(most, each.total());
    kept->clear();
    for (int device = 0; device < pairs_.devices(); ++device) {
      const double has = memory_[static_cast<size_t>(device)];
      if (has == 0 || most <= has) kept->push_back(device);
    }
    if (static_cast<int>(kept->size()) < shape.stages * shape.replicas) return std::nullopt;
    if (static_cast<int>(kept->size()) == pairs_.devices())
      return make_problem(request_.job, pairs_, speed_, shape, request_.codings, gradient, request_.overlap);
    Pairs pairs(static_cast<int>(kept->size()));
    std::vector<double> speed;
    for (int a = 0; a < pairs.devices(); ++a) {
      speed.push_back(speed_[static_cast<size_t>((*kept)[static_cast<size_t>(a)])]);
      for (int b = 0; b < pairs.devices(); ++b)
        pairs.at(a, b) = pairs_.at((*kept)[static_cast<size_t>(a)], (*kept)[static_cast<size_t>(b)]);
    }
    return make_problem(request_.job, pairs, speed, shape, request_.codings, gradient, request_.overlap);
  }

  /// The problem of all devices, with a layout found among those kept.
  Choice in_full(const Shape& shape, const Coding& gradient, Found found,
                 const std::vector<int>& kept) const {
    for (int& device : found.layout.device) device = kept[static_cast<size_t>(device)];
    return {shape,
            make_problem(request_.job, pairs_, speed_, shape, request_.codings, gradient, request_.overlap),
            std::move(found)};
  }

  /// With the coding of gradients that suits the layout that is found.
  Choice with_gradients(const Shape& shape, const Effort& effort) const {
    std::optional<Choice> best;
    // Codings change how the exchange weighs against the rest, so each has a search; a lone replica needs
    // one.
    const size_t count = shape.replicas == 1 ? 1 : request_.codings.gradient.size();
    const bool rough = effort.share == 0;  // the fewest bits stand for all
    for (size_t k = rough ? count - 1 : 0; k < count; ++k) {
      const Coding& gradient = request_.codings.gradient[k];
      std::vector<int> kept;
      const std::optional<Problem> problem = problem_of(shape, gradient, &kept);
      if (!problem) break;
      Effort part = effort;
      part.budget_s /= static_cast<double>(count);
      part.share /= static_cast<double>(count);
      Choice choice = in_full(shape, gradient, search(*problem, part), kept);
      // More bits where fewer gain nothing.
      if (!best || choice.found.cost.total_s < best->found.cost.total_s * (1 - 1e-3))
        best = std::move(choice);
    }
    if (!best) too_little_memory(shape);
    return *best;
  }

  [[noreturn]] void too_little_memory(const Shape& shape) const {
    const std::vector<Memory> needs = memory_of(request_.job, split_layers(request_.job, shape.stages),
                                                shape.replicas, shape.micro_batches);
    double most = 0;
    for (const Memory& each : needs) most = std::max(most, each.total());
    throw ConfigError(
        "the model does not fit: {} x {} needs {} on each of {} devices, and too few of network {} have as "
        "much; "
        "take more stages, a smaller batch or devices with more memory",
        shape.stages, shape.replicas, bytes_for_people(most), shape.stages * shape.replicas,
        request_.topology.name());
  }

  std::vector<int> sizes(int most, bool all) const {
    std::vector<int> result;
    for (int k = 1; k <= most; ++k) {
      const bool round = (k & (k - 1)) == 0 || most % k == 0;
      if (all || round) result.push_back(k);
    }
    return result;
  }

  std::vector<int> micro_batches(int stages, int replicas) const {
    if (request_.micro_batches) return {*request_.micro_batches};
    std::vector<int> all;
    for (int m = 1; m <= 1024; m *= 2) {
      if (!request_.job.divides(replicas, m)) break;
      all.push_back(m);
      if (request_.job.global_batch == 0 && m >= 8 * stages) break;
    }
    return all;
  }

  /// All shapes that fit the request, the devices and the batch.
  std::vector<Shape> open_shapes() const {
    const int devices = pairs_.devices();
    const bool all = devices <= kFew;
    const std::vector<int> stages = request_.stages ? std::vector<int>{*request_.stages}
                                                    : sizes(std::min(devices, request_.job.depth()), all);
    std::vector<Shape> shapes;
    bool divisible = false;
    for (const int p : stages) {
      const std::vector<int> replicas =
          request_.replicas ? std::vector<int>{*request_.replicas} : sizes(devices / p, all);
      for (const int d : replicas) {
        if (p * d > devices) continue;
        for (const int m : micro_batches(p, d)) {
          if (!request_.job.divides(d, m)) continue;
          divisible = true;
          if (fits({p, d, m})) shapes.push_back({p, d, m});
        }
      }
    }
    if (!divisible) {
      throw ConfigError("a batch of {} does not divide among {} replicas of {} micro-batches; choose others",
                        request_.job.global_batch, request_.replicas.value_or(1),
                        request_.micro_batches.value_or(1));
    }
    if (shapes.empty()) {
      if (request_.stages && request_.replicas)
        too_little_memory({*request_.stages, *request_.replicas,
                           request_.micro_batches.value_or(*request_.stages == 1 ? 1024 : 1)});
      const double roomiest = *std::max_element(memory_.begin(), memory_.end());
      throw ConfigError(
          "the model fits on no devices of network {}: the roomiest has {}, and its largest layer needs {}; "
          "take "
          "devices with more memory, or a smaller batch",
          request_.topology.name(), bytes_for_people(roomiest), bytes_for_people(least_memory(request_.job)));
    }
    return shapes;
  }

  bool fits(const Shape& shape) const {
    std::vector<int> kept;
    const std::vector<Memory> needs = memory_of(request_.job, split_layers(request_.job, shape.stages),
                                                shape.replicas, shape.micro_batches);
    double most = 0;
    for (const Memory& each : needs) most = std::max(most, each.total());
    const auto room =
        std::count_if(memory_.begin(), memory_.end(), [&](double has) { return has == 0 || has >= most; });
    return room >= shape.stages * shape.replicas;
  }

  /// Compute alone, on the fastest device, and nothing sent.
  double least_cost(const Shape& shape) const {
    const double fastest_device = *std::max_element(speed_.begin(), speed_.end());
    const Problem problem = make_problem(request_.job, Pairs(), speed_, shape, {}, {}, true);
    double sum = 0, slowest = 0;
    for (const StageWork& work : problem.work) {
      sum += work.forward_s + work.backward_s;
      slowest = std::max(slowest, work.forward_s + work.backward_s);
    }
    return (sum + (shape.micro_batches - 1) * slowest) / fastest_device;
  }

  int usual_micro_batches(const Shape& shape) const {
    int usual = 1;
    for (const int m : micro_batches(shape.stages, shape.replicas)) {
      if (m <= 4 * shape.stages && fits({shape.stages, shape.replicas, m})) usual = m;
    }
    return usual;
  }

  /// The best few grids with every number of micro-batches, by a short search; best first.
  std::vector<Rough> with_all_micro_batches(const std::vector<Rough>& best,
                                            const std::vector<Shape>& shapes) const {
    constexpr size_t kGrids = 3;
    std::vector<Rough> all;
    for (size_t k = 0; k < std::min(kGrids, best.size()); ++k) {
      for (const Shape& shape : shapes) {
        if (shape.stages != best[k].shape.stages || shape.replicas != best[k].shape.replicas) continue;
        all.push_back({shape, 0, with_gradients(shape, {.seed = request_.effort.seed, .share = 0})});
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Rough& a, const Rough& b) {
      return a.choice.found.cost.total_s < b.choice.found.cost.total_s;
    });
    return all;
  }

  Choice best_of(const std::vector<Shape>& shapes) const {
    std::vector<Rough> all;
    for (const Shape& shape : shapes) all.push_back({shape, least_cost(shape)});
    std::stable_sort(all.begin(), all.end(),
                     [](const Rough& a, const Rough& b) { return a.least < b.least; });
    // A short search of each, until none can be better than the best; then a long one of the best few.
    const bool few = pairs_.devices() <= kFew;
    const double rough_share = few ? 0.02 : 0;
    double best_cost = std::numeric_limits<double>::infinity();
    for (Rough& rough : all) {
      if (rough.least >= best_cost) break;
      // Among many, four micro-batches for each stage stand for all numbers of them.
      if (!few && !request_.micro_batches && rough.shape.micro_batches != usual_micro_batches(rough.shape))
        continue;
      rough.choice = with_gradients(rough.shape, {.seed = request_.effort.seed, .share = rough_share});
      best_cost = std::min(best_cost, rough.choice.found.cost.total_s);
    }
    std::erase_if(all, [](const Rough& rough) { return rough.choice.found.layout.device.empty(); });
    std::stable_sort(all.begin(), all.end(), [](const Rough& a, const Rough& b) {
      const double x = a.choice.found.cost.total_s, y = b.choice.found.cost.total_s;
      return x != y ? x < y : a.shape.stages * a.shape.replicas < b.shape.stages * b.shape.replicas;
    });
    constexpr size_t kRefined = 6;
    Choice best = all.front().choice;
    if (!few) all = with_all_micro_batches(all, shapes);
    for (size_t k = 0; k < std::min(kRefined, all.size()); ++k) {
      Choice choice = with_gradients(all[k].shape, {.seed = request_.effort.seed,
                                                    .budget_s = budget(1.0 / kRefined),
                                                    .share = request_.effort.share / kRefined});
      if (choice.found.cost.total_s < best.found.cost.total_s) best = std::move(choice);
    }
    return best;
  }

  const Request& request_;
  Pairs pairs_;
  std::vector<double> speed_, memory_;
};

}  // namespace

std::vector<double> device_memory(const Request& request) {
  std::vector<double> memory;
  for (int device = 0; device < request.topology.devices(); ++device) {
    const double known =
        request.topology.hosts()[static_cast<size_t>(request.topology.host_of(device))].memory_gib;
    memory.push_back((known > 0 ? known : request.memory_gib) * kGib);
  }
  return memory;
}

Choice choose(const Request& request) { return Chooser(request).best(); }

double one_device_cost(const Request& request) {
  const std::vector<double> speed = device_speed(request.topology), memory = device_memory(request);
  double best = 0;
  for (int m = 1; m <= 1024; m *= 2) {
    if (!request.job.divides(1, m)) break;
    const double needs = memory_of(request.job, {0}, 1, m).front().total();
    double fastest_device = 0;
    for (size_t device = 0; device < speed.size(); ++device) {
      if (memory[device] == 0 || memory[device] >= needs)
        fastest_device = std::max(fastest_device, speed[device]);
    }
    if (fastest_device == 0) continue;
    const StageWork work = request.job.work(request.job.examples() / m);
    const double cost = (m * (work.forward_s + work.backward_s) + work.update_s) / fastest_device;
    if (best == 0 || cost < best) best = cost;
  }
  return best;
}

double region_blind_cost(const Problem& problem, const network::Topology& topology, int count,
                         uint64_t seed) {
  const Tables tables(problem);
  std::vector<std::vector<int>> devices_of(static_cast<size_t>(topology.size()));
  for (int device = 0; device < topology.devices(); ++device)
    devices_of[static_cast<size_t>(topology.host_of(device))].push_back(device);
  double sum = 0;
  for (int k = 0; k < count; ++k) {
    std::vector<int> places;
    for (const int64_t host : permutation(topology.size(), mix_key(seed, 3, k))) {
      const std::vector<int>& own = devices_of[static_cast<size_t>(host)];
      places.insert(places.end(), own.begin(), own.end());
    }
    Board board(tables, std::move(places));
    board.reorder();
    sum += evaluate(problem, board.layout()).total_s;
  }
  return sum / count;
}

}  // namespace syncopate::plan
