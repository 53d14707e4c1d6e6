#pragma once

#include <string>
#include <string_view>

#include "syncopate/report/results.h"

// How figures are said: in tables, sentences and flags alike.
namespace syncopate::report {

std::string grouped(double count);                               ///< "30,000"
std::string quality_text(const Measure& measure, double value);  ///< "81.22 %" or "12.35"; "–" of none
/// "−0.10 ± 0.40 points", "+1.2" of one seed.
std::string difference_text(const Measure& measure, const Difference& difference);
/// "better", "worse", "the same", "undecided" or, without a seed in common, "not compared".
std::string verdict_text(const Difference& difference);
std::string times_text(double factor);                           ///< "1.85x"
std::string seeds_text(int64_t seeds);                           ///< "1 seed", "3 seeds"
std::string seeds_named(const std::vector<std::string>& seeds);  ///< "seed 2", "seeds 2 and 3"
std::string workers_text(int64_t workers);                       ///< "one worker", "4 workers"
/// "4 stages", "4 stages, ac-sgd".
std::string stages_text(int64_t stages, std::string_view activation_codec);
/// "worldwide", "worldwide ÷ 100" where its rates were divided.
std::string network_text(const NetworkName& network);
/// "+4.1 %" of (predicted - measured) / measured; "–" of none.
std::string error_text(double error);
std::string joined(const std::vector<std::string>& names, const char* last);  ///< "a, b and c"

/// Names in a sentence, the first few of many: "a, b, c and 12 more".
std::string some_of(const std::vector<std::string>& names);

/// Whether a table has something to say there.
bool any_network(const Results& results);
bool any_prediction(const Results& results);
/// "Of 8 predictions that can be judged, …"; empty: there is none.
std::string prediction_text(const PredictionSummary& errors);

/// A failed check or a flag in a sentence, and the arms that it is about.
struct Remark {
  std::string text{};
  std::vector<size_t> arms{};  ///< their places in the results, in order
};

/// What tables say below their lines: a sentence that several arms share stands once.
std::vector<Remark> remarks_of(const Results& results);

}  // namespace syncopate::report
