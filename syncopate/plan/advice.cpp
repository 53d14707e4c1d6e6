#include "syncopate/plan/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/quantile.h"
#include "syncopate/base/text.h"
#include "syncopate/spec/effect.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::plan {
namespace {

using Json = nlohmann::ordered_json;

/// What must be gained before something less simple is worth it.
constexpr double kGain = 1.05;

const sim::Profile& profile_for(const AdviceRequest& request, int64_t workers) {
  check(!request.profiles.empty(), "advice needs a profile");
  const auto nearest =
      std::min_element(request.profiles.begin(), request.profiles.end(), [&](const auto& a, const auto& b) {
        return std::abs(a.first - workers) < std::abs(b.first - workers);
      });
  return nearest->second;
}

/// The base with another strategy, codec and number of workers; settings that these do not heed are dropped.
spec::RunSpec candidate(const spec::RunSpec& base, std::string_view strategy, std::string_view codec,
                        int64_t workers) {
  spec::RunSpec spec = base;
  const int64_t global = base.examples_per_step();
  spec.strategy.name = strategy;
  spec.codec.name = codec;
  spec.comm.workers = workers;
  if (workers == 1) {  // alone it holds the whole model
    spec.pipeline = {};
    spec.activation = {};
  }
  spec.train.batch_size = 0;
  spec.train.global_batch = global;
  spec::drop_unheeded(spec, {});
  return spec;
}

/// All sums are those of one worker with the whole batch.
bool is_plain(const spec::RunSpec& spec) {
  return spec::strategy_info(spec.strategy.name).rhythm == spec::Rhythm::kTogether &&
         spec.codec.name == "none";
}

std::string in_seconds(double ms) {
  return ms < 1000 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.1f} s", ms / 1e3);
}

/// The link that is busy longest, for a sentence: "through 0.1 Gbit/s".
std::string through(const sim::Prediction& step, const network::Topology& topology) {
  const auto busiest = std::max_element(step.links.begin(), step.links.end(),
                                        [](const auto& a, const auto& b) { return a.busy < b.busy; });
  if (busiest == step.links.end()) return "inside one host";
  const network::Link& link = topology.link(busiest->from, busiest->to);
  if (busiest->busy < 0.3) return fmt::format("over {:g} ms of latency", link.latency_ms);
  return fmt::format("through {:.3g} Gbit/s", link.gbit);
}

class Adviser {
 public:
  explicit Adviser(const AdviceRequest& request) : request_(request) {}

  Advice make() {
    try_row("single", "none", 1);
    if (advice_.rows.empty()) throw ConfigError("one worker cannot run this: {}", reasons_.front().why);
    for (const int64_t workers : request_.workers) {
      if (workers < 2) continue;
      for (const spec::StrategyInfo& strategy : spec::strategies()) {
        if (strategy.one_worker) continue;
        for (const spec::CodecInfo& codec : spec::codecs()) {
          if (strategy.takes_codec || codec.packing == spec::Packing::kNone)
            try_row(strategy.name, codec.name, workers);
        }
      }
    }
    std::stable_sort(advice_.rows.begin(), advice_.rows.end(), [](const AdviceRow& a, const AdviceRow& b) {
      return a.predicted.examples_per_s > b.predicted.examples_per_s;
    });
    for (size_t i = 0; i < advice_.rows.size(); ++i) {
      if (advice_.rows[i].spec.comm.workers == 1) advice_.alone = i;
    }
    for (AdviceRow& row : advice_.rows) judge(row);
    tell_reasons();
    return std::move(advice_);
  }

 private:
  void try_row(std::string_view strategy, std::string_view codec, int64_t workers) {
    try {
      AdviceRow row{.spec = candidate(request_.base, strategy, codec, workers)};
      row.spec.validate();
      const auto ranks = static_cast<int>(workers + row.spec.servers());
      const sim::Scene scene{.topology = request_.topology,
                             .seats = network::seats(request_.topology, request_.base.network.hosts, ranks),
                             .profile = profile_for(request_, workers),
                             .one_machine = request_.one_machine};
      row.hosts = scene.seats;
      row.hosts.erase(std::unique(row.hosts.begin(), row.hosts.end()), row.hosts.end());
      row.predicted = sim::predict(row.spec, scene);
      row.price_epoch = price_of(row);
      advice_.rows.push_back(std::move(row));
    } catch (const ConfigError& error) {
      leave_out(std::string(strategy), std::string(codec), workers, error.what());
    }
  }

  /// Once for each reason, however many codecs and numbers of workers it holds for.
  void leave_out(const std::string& strategy, const std::string& codec, int64_t workers,
                 const std::string& why) {
    const auto same = [&](const Reason& known) { return known.strategy == strategy && known.why == why; };
    auto found = std::find_if(reasons_.begin(), reasons_.end(), same);
    if (found == reasons_.end()) found = reasons_.insert(found, {.strategy = strategy, .why = why});
    found->codecs.insert(codec);
    found->workers.insert(workers);
  }
  void tell_reasons() {
    for (const Reason& reason : reasons_) {
      // Without a codec it cannot run either: then it is the strategy's.
      const std::string codecs =
          reason.codecs.contains("none") ? std::string() : fmt::format(", {}", fmt::join(reason.codecs, "/"));
      advice_.left_out.push_back(fmt::format("{}{} with {} worker{}: {}", reason.strategy, codecs,
                                             fmt::join(reason.workers, ", "),
                                             *reason.workers.rbegin() == 1 ? "" : "s", reason.why));
    }
  }

  double price_of(const AdviceRow& row) const {
    const double examples = profile_for(request_, row.spec.comm.workers).training_examples;
    double hour = 0;
    for (const int host : row.hosts) hour += request_.topology.hosts()[static_cast<size_t>(host)].price_hour;
    return examples > 0 ? hour * examples / row.predicted.examples_per_s / 3600 : 0;
  }

  /// The fastest of those that `fits`; none: null.
  template <typename Fits>
  const AdviceRow* fastest(const Fits& fits) const {
    const auto found = std::find_if(advice_.rows.begin(), advice_.rows.end(), fits);
    return found == advice_.rows.end() ? nullptr : &*found;
  }

  void judge(AdviceRow& row) const {
    const sim::Prediction& step = row.predicted;
    const AdviceRow& alone = advice_.rows[advice_.alone];
    const std::string cost = fmt::format(
        "sends {} a step {}: {} of waiting beside {} of compute", bytes_for_people(step.bytes_per_step),
        through(step, request_.topology), in_seconds(step.exchange_ms), in_seconds(step.compute_ms));
    const double gain = step.examples_per_s / alone.predicted.examples_per_s;
    if (row.spec.comm.workers == 1) {
      row.worth_it = true;
      row.why = advice_.rows.size() == 1 ? "nothing else was looked at"
                : &advice_.rows.front() == &row
                    ? "one worker is faster than any other number of them on this network"
                    : "what the others are compared with";
      return;
    }
    if (gain < 1) {
      row.why = fmt::format("one worker is faster: {}", cost);
      return;
    }
    const AdviceRow* const plain = fastest([&](const AdviceRow& other) {
      return is_plain(other.spec) && other.spec.comm.workers <= row.spec.comm.workers;
    });
    if (!is_plain(row.spec) && plain != nullptr &&
        step.examples_per_s < kGain * plain->predicted.examples_per_s) {
      row.why = fmt::format("no faster than {} with {} worker{}, which changes nothing about training; {}",
                            plain->spec.label(), plain->spec.comm.workers,
                            plain->spec.comm.workers == 1 ? "" : "s", cost);
      return;
    }
    const AdviceRow* const fewer =
        fastest([&](const AdviceRow& other) { return other.spec.comm.workers < row.spec.comm.workers; });
    if (fewer != nullptr && fewer->predicted.examples_per_s > step.examples_per_s) {
      row.why = fmt::format("{} with {} worker{} is faster; {}", fewer->spec.label(),
                            fewer->spec.comm.workers, fewer->spec.comm.workers == 1 ? "" : "s", cost);
      return;
    }
    row.worth_it = gain >= kGain;
    row.why = row.worth_it ? fmt::format("{:.1f} times as fast as one worker", gain)
                           : fmt::format("hardly faster than one worker; {}", cost);
  }

  struct Reason {
    std::string strategy{}, why{};
    std::set<std::string> codecs{};
    std::set<int64_t> workers{};
  };

  const AdviceRequest& request_;
  Advice advice_{};
  std::vector<Reason> reasons_{};
};

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json row_json(const AdviceRow& row, const AdviceRequest& request) {
  Json hosts = Json::array();
  for (const int host : row.hosts) hosts.push_back(request.topology.hosts()[static_cast<size_t>(host)].name);
  const sim::Prediction& step = row.predicted;
  Json json{{"strategy", row.spec.strategy.name},
            {"codec", row.spec.codec.name},
            {"every", spec::traffic_of(row.spec, 1).every},
            {"workers", row.spec.comm.workers},
            {"hosts", hosts},
            {"predicted",
             {{"ms", number(step.ms)},
              {"compute_ms", number(step.compute_ms)},
              {"exchange_ms", number(step.exchange_ms)},
              {"hidden_ms", number(step.hidden_ms)},
              {"examples_per_s", number(step.examples_per_s)},
              {"bytes_per_step", number(step.bytes_per_step)},
              {"memory", step.memory > 0 ? Json(step.memory) : Json()},
              {"price_epoch", row.price_epoch > 0 ? Json(row.price_epoch) : Json()}}},
            {"measured", nullptr},
            {"error", nullptr},
            {"worth_it", row.worth_it},
            {"why", row.why}};
  if (row.measured) {
    const Checked& measured = *row.measured;
    json["measured"] = {{"ms", measured.ms},
                        {"compute_ms", measured.compute_ms},
                        {"exchange_ms", measured.exchange_ms},
                        {"examples_per_s", measured.examples_per_s},
                        {"bytes_per_step", measured.bytes_per_step},
                        {"trustworthy", measured.trustworthy}};
    json["error"] = row.error();
  }
  if (!row.failed.empty()) json["failed"] = row.failed;
  return json;
}

}  // namespace

std::optional<double> Advice::error_at(double share) const {
  std::vector<double> errors;
  for (const AdviceRow& row : rows) {
    if (row.measured && row.measured->trustworthy) errors.push_back(std::abs(row.error()));
  }
  if (errors.empty()) return std::nullopt;
  return quantile(errors, share);
}

Advice advise(const AdviceRequest& request) { return Adviser(request).make(); }

std::vector<size_t> rows_to_check(const Advice& advice, size_t best) {
  std::vector<size_t> chosen;
  const auto take = [&](size_t row) {
    if (std::find(chosen.begin(), chosen.end(), row) == chosen.end()) chosen.push_back(row);
  };
  for (size_t row = 0; row < std::min(best, advice.rows.size()); ++row) take(row);
  for (size_t row = 0; row < advice.rows.size(); ++row) {
    const spec::RunSpec& spec = advice.rows[row].spec;
    if (spec.strategy.name == "ddp" && spec.codec.name == "none") {
      take(row);
      break;
    }
  }
  if (!advice.rows.empty()) take(advice.rows.size() - 1);
  return chosen;
}

Json to_json(const Advice& advice, const AdviceRequest& request) {
  Json rows = Json::array();
  for (const AdviceRow& row : advice.rows) rows.push_back(row_json(row, request));
  const auto error = [&](double share) {
    const auto value = advice.error_at(share);
    return value ? Json(*value) : Json();
  };
  return {{"format", "syncopate-advice-1"},
          {"network", request.topology.name()},
          {"scale", request.base.network.scale},
          {"workers", request.workers},
          {"task", request.base.task.name},
          {"model",
           request.base.model.init_from.empty() ? request.base.model.name : request.base.model.init_from},
          {"global_batch", request.base.examples_per_step()},
          {"one_machine", request.one_machine},
          {"rows", rows},
          {"best", 0},
          {"median_error", error(0.5)},
          {"p90_error", error(0.9)},
          {"left_out", advice.left_out}};
}

}  // namespace syncopate::plan
