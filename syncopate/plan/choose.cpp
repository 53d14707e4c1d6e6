#include "syncopate/plan/choose.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/base/text.h"
#include "syncopate/plan/board.h"
#include "syncopate/plan/play.h"
#include "syncopate/plan/room.h"
#include "syncopate/plan/words.h"

namespace syncopate::plan {
namespace {

/// So few devices that every shape can be searched.
constexpr int kFewDevices = 16;
/// Fewer bits have to gain more than a thousandth.
constexpr double kGainOfFewerBits = 1 - 1e-3;
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
    const std::vector<Shape> shapes = open_shapes();
    // All or none: the two times do not compare.
    plays_ = pairs_.devices() <= kFewDevices &&
             std::all_of(shapes.begin(), shapes.end(),
                         [&](const Shape& shape) { return can_play(request_, shape); });
    return shapes.size() == 1 ? with_codings(shapes.front(), request_.effort) : best_of(shapes);
  }

  int fewest() const {
    if (std::any_of(memory_.begin(), memory_.end(), [](double each) { return each == 0; })) return 0;
    double weights = 0;
    for (const Memory& each : memory_of(request_.job, split_of(1), 1, 1))
      weights += each.weights + each.gradients + each.optimizer;
    std::vector<double> sorted = memory_;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    double room = 0;
    for (int count = 1; count <= pairs_.devices(); ++count) {
      room += sorted[static_cast<size_t>(count - 1)];
      if (room < weights) continue;
      for (int p = 1; p <= std::min(count, request_.job.depth()); ++p) {
        if (count % p != 0 || !request_.job.divides(count / p, 1)) continue;
        for (const int m : micro_batches(p, count / p)) {
          if (request_.job.divides(count / p, m) && fits({p, count / p, m})) return count;
        }
      }
    }
    return 0;
  }

 private:
  struct Rough {
    Shape shape;
    double least = 0;  ///< no layout can be faster
    Choice choice{};
  };

  double budget(double share) const { return request_.effort.budget_s * share; }

  const std::vector<int>& split_of(int stages) const {
    const auto [found, is_new] = splits_.try_emplace(stages);
    if (is_new) found->second = split_layers(request_.job, stages);
    return found->second;
  }

  Room room_of(const Shape& shape) const {
    Room room{.has = memory_};
    for (const Memory& each :
         memory_of(request_.job, split_of(shape.stages), shape.replicas, shape.micro_batches))
      room.needs.push_back(each.total());
    return room;
  }

  bool fits(const Shape& shape) const { return !shortage(room_of(shape), shape.replicas).any(); }

  std::vector<int> devices_with(double bytes) const {
    std::vector<int> kept;
    for (int device = 0; device < pairs_.devices(); ++device) {
      const double has = memory_[static_cast<size_t>(device)];
      if (has == 0 || has >= bytes) kept.push_back(device);
    }
    return kept;
  }

  /// A problem with these devices alone.
  Problem problem_of(const Shape& shape, const Bits& bits, const std::vector<int>& kept) const {
    if (static_cast<int>(kept.size()) == pairs_.devices())
      return make_problem(request_.job, pairs_, speed_, shape, bits, request_.overlap);
    Pairs pairs(static_cast<int>(kept.size()));
    std::vector<double> speed;
    for (int a = 0; a < pairs.devices(); ++a) {
      speed.push_back(speed_[static_cast<size_t>(kept[static_cast<size_t>(a)])]);
      for (int b = 0; b < pairs.devices(); ++b)
        pairs.at(a, b) = pairs_.at(kept[static_cast<size_t>(a)], kept[static_cast<size_t>(b)]);
    }
    return make_problem(request_.job, pairs, speed, shape, bits, request_.overlap);
  }

  /// The best layout in which every device holds its stage. None of a shape that does not fit.
  std::optional<Choice> choice_of(const Shape& shape, const Bits& bits, Effort effort) const {
    Room room = room_of(shape);
    if (shortage(room, shape.replicas).any()) return std::nullopt;
    const std::vector<int> for_all = devices_with(room.most()), for_some = devices_with(room.least());
    const bool enough = static_cast<int>(for_all.size()) >= shape.stages * shape.replicas;
    const bool uneven = for_some.size() > for_all.size();
    if (enough && uneven) effort.budget_s /= 2;
    std::optional<Choice> best;
    if (enough) best = in_full(shape, bits, search(problem_of(shape, bits, for_all), effort), for_all);
    if (uneven) {
      // Devices that hold some stages only: the search does not know memory, so its layout is made to fit.
      const Problem problem = problem_of(shape, bits, for_some);
      room.has.clear();
      for (const int device : for_some) room.has.push_back(memory_[static_cast<size_t>(device)]);
      const Found free = search(problem, effort);
      Choice choice = in_full(shape, bits, fitted(problem, room, free.layout, effort), for_some);
      choice.found.moves += free.moves;
      if (!best || choice.found.cost.total_s < best->found.cost.total_s) best = std::move(choice);
    }
    return best;
  }

  /// The problem of all devices, with a layout found among those kept.
  Choice in_full(const Shape& shape, const Bits& bits, Found found, const std::vector<int>& kept) const {
    for (int& device : found.layout.device) device = kept[static_cast<size_t>(device)];
    return {.shape = shape,
            .problem = make_problem(request_.job, pairs_, speed_, shape, bits, request_.overlap),
            .found = std::move(found)};
  }

  /// What a choice is chosen by: played out where that is quick, else the closed form.
  Choice judged(Choice choice) const {
    choice.judged_s = plays_ ? played_out(request_, choice.shape, choice.problem, choice.found.layout)
                             : choice.found.cost.total_s;
    return choice;
  }

  /// With the codings that suit the layout that is found.
  Choice with_codings(const Shape& shape, const Effort& effort) const {
    // Codings of gradients change how the exchange weighs against the rest, so each has a search; a lone
    // replica needs one. Those of activations are tried on the layout that the fewest bits have.
    const size_t count = shape.replicas == 1 ? 1 : request_.codings.gradient.size();
    const bool rough = effort.share == 0;  // the fewest bits stand for all
    Effort part = effort;
    part.budget_s /= static_cast<double>(count);
    part.share /= static_cast<double>(count);
    std::vector<Choice> all;  // the most bits first
    for (size_t k = rough ? count - 1 : 0; k < count; ++k) {
      Bits bits = request_.codings.fewest();
      bits.gradient = request_.codings.gradient[k];
      const std::optional<Choice> found = choice_of(shape, bits, part);
      if (!found) too_little_memory(shape);
      if (rough || shape.stages == 1) {
        all.push_back(judged(*found));
        continue;
      }
      for (const auto& [forward, backward] : request_.codings.activations) {
        Choice other = *found;
        other.problem.forward = forward;
        other.problem.backward = backward;
        other.found.cost = evaluate(other.problem, other.found.layout);
        all.push_back(judged(std::move(other)));
      }
    }
    double least = std::numeric_limits<double>::infinity();
    for (const Choice& choice : all) least = std::min(least, choice.judged_s);
    // More bits where fewer gain nothing.
    Choice best = *std::find_if(all.begin(), all.end(), [&](const Choice& each) {
      return each.judged_s * kGainOfFewerBits <= least;
    });
    return rough ? best : searched_again(std::move(best), part);
  }

  /// The layout was found for the fewest bits between stages; others have a search of their own.
  Choice searched_again(Choice best, const Effort& effort) const {
    const Coding& fewest = request_.codings.activations.back().first;
    if (best.shape.stages == 1 || best.problem.forward.bits == fewest.bits) return best;
    const std::optional<Choice> again =
        choice_of(best.shape, {best.problem.forward, best.problem.backward, best.problem.gradient}, effort);
    if (!again) return best;
    Choice other = judged(*again);
    return other.judged_s < best.judged_s ? other : best;
  }

  /// "4 stages x 1 replica: 4 devices need 17 GB or more, and 2 have as much".
  std::string lack(const Shape& shape) const {
    const Shortage lack = shortage(room_of(shape), shape.replicas);
    return fmt::format("{} x {}: {} {} {}{}, and {} {} as much", plural(shape.stages, "stage"),
                       plural(shape.replicas, "replica"), plural(lack.places, "device"),
                       lack.places == 1 ? "needs" : "need", bytes_for_people(lack.bytes),
                       lack.places > shape.replicas ? " or more" : "", lack.devices,
                       lack.devices == 1 ? "has" : "have");
  }

  [[noreturn]] void too_little_memory(const Shape& shape) const {
    throw ConfigError("the model does not fit on network {} in {}; {}", request_.topology.name(), lack(shape),
                      remedy());
  }

  /// Another shape of all devices, or of some, that fits; else what could make one fit.
  std::string remedy() const {
    const int devices = pairs_.devices();
    for (const bool all : {true, false}) {
      for (int p = 1; p <= std::min(devices, request_.job.depth()); ++p) {
        for (int d = devices / p; d >= 1; --d) {
          if ((p * d == devices) != all || d > kMostReplicas || !request_.job.divides(d, 1)) continue;
          for (const int m : micro_batches(p, d)) {
            if (!request_.job.divides(d, m) || !fits({p, d, m})) continue;
            return all ? fmt::format("{} x {} does", plural(p, "stage"), plural(d, "replica"))
                       : "--stages auto --replicas auto finds a shape that does";
          }
        }
      }
    }
    return no_shape_helps();
  }

  std::string no_shape_helps() const {
    const bool batch_counts = std::any_of(request_.job.layers.begin(), request_.job.layers.end(),
                                          [](const auto& layer) { return layer.activation_bytes > 0; });
    return batch_counts ? "take devices with more memory, more of them, or a smaller batch"
                        : "take devices with more memory, or more of them";
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
    const bool all = devices <= kFewDevices;
    const std::vector<int> stages = request_.stages ? std::vector<int>{*request_.stages}
                                                    : sizes(std::min(devices, request_.job.depth()), all);
    std::vector<Shape> shapes;
    std::optional<Shape> leanest;  // the fullest device of which needs least
    double least = std::numeric_limits<double>::infinity();
    bool too_many = false;
    for (const int p : stages) {
      const std::vector<int> replicas =
          request_.replicas ? std::vector<int>{*request_.replicas} : sizes(devices / p, all);
      for (const int d : replicas) {
        if (p * d > devices) continue;
        if (d > kMostReplicas) {
          too_many = true;
          continue;
        }
        for (const int m : micro_batches(p, d)) {
          if (!request_.job.divides(d, m)) continue;
          const Room room = room_of({p, d, m});
          if (!shortage(room, d).any()) shapes.push_back({p, d, m});
          if (!leanest || room.most() < least) {
            leanest = {p, d, m};
            least = room.most();
          }
        }
      }
    }
    if (!shapes.empty()) return shapes;
    if (!leanest && too_many) {
      throw ConfigError("a stage has {} replicas at most, got {}; take more stages", kMostReplicas,
                        request_.replicas.value_or(kMostReplicas + 1));
    }
    if (!leanest) {
      throw ConfigError("a batch of {} does not divide among {} of {}; choose others",
                        request_.job.global_batch, plural(request_.replicas.value_or(1), "replica"),
                        plural(request_.micro_batches.value_or(1), "micro-batch"));
    }
    if (request_.stages && request_.replicas) too_little_memory(*leanest);
    throw ConfigError("the model fits on no devices of network {}; least is needed in {}; {}",
                      request_.topology.name(), lack(*leanest),
                      request_.stages || request_.replicas ? remedy() : no_shape_helps());
  }

  /// Compute alone, on the fastest device, and nothing sent.
  double least_cost(const Shape& shape) const {
    const double fastest_device = *std::max_element(speed_.begin(), speed_.end());
    const Problem problem = make_problem(request_.job, Pairs(), speed_, shape, {}, true);
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
        all.push_back({shape, 0, with_codings(shape, {.seed = request_.effort.seed, .share = 0})});
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Rough& a, const Rough& b) { return a.choice.judged_s < b.choice.judged_s; });
    return all;
  }

  Choice best_of(const std::vector<Shape>& shapes) const {
    std::vector<Rough> all;
    for (const Shape& shape : shapes) all.push_back({shape, least_cost(shape)});
    std::stable_sort(all.begin(), all.end(),
                     [](const Rough& a, const Rough& b) { return a.least < b.least; });
    // A short search of each, until none can be better than the best; then a long one of the best few.
    const bool few = pairs_.devices() <= kFewDevices;
    const double rough_share = few ? 0.02 : 0;
    double best_cost = std::numeric_limits<double>::infinity();
    for (Rough& rough : all) {
      if (rough.least >= best_cost) break;
      // Among many, four micro-batches for each stage stand for all numbers of them.
      if (!few && !request_.micro_batches && rough.shape.micro_batches != usual_micro_batches(rough.shape))
        continue;
      rough.choice = with_codings(rough.shape, {.seed = request_.effort.seed, .share = rough_share});
      best_cost = std::min(best_cost, rough.choice.judged_s);
    }
    std::erase_if(all, [](const Rough& rough) { return rough.choice.found.layout.device.empty(); });
    std::stable_sort(all.begin(), all.end(), [](const Rough& a, const Rough& b) {
      const double x = a.choice.judged_s, y = b.choice.judged_s;
      return x != y ? x < y : a.shape.stages * a.shape.replicas < b.shape.stages * b.shape.replicas;
    });
    constexpr size_t kRefined = 6;
    Choice best = all.front().choice;
    if (!few) all = with_all_micro_batches(all, shapes);
    for (size_t k = 0; k < std::min(kRefined, all.size()); ++k) {
      Choice choice = with_codings(all[k].shape, {.seed = request_.effort.seed,
                                                  .budget_s = budget(1.0 / kRefined),
                                                  .share = request_.effort.share / kRefined});
      if (choice.judged_s < best.judged_s) best = std::move(choice);
    }
    return best;
  }

  const Request& request_;
  Pairs pairs_;
  std::vector<double> speed_, memory_;
  bool plays_ = false;  ///< shapes are compared played out
  mutable std::map<int, std::vector<int>> splits_{};
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

int fewest_devices(const Request& request) { return Chooser(request).fewest(); }

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
