#include "syncopate/train/squad_metric.h"

#include <ATen/ATen.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/corpora/squad/squad_score.h"

namespace syncopate::train {
namespace {

nlohmann::json to_json(const std::vector<data::FeatureAnswers>& answers) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& each : answers) {
    nlohmann::json spans = nlohmann::json::array();
    for (const auto& span : each.candidates) spans.push_back({span.start, span.end, span.score});
    list.push_back({each.feature, each.null_score, std::move(spans)});
  }
  return list;
}

void append(const nlohmann::json& list, std::vector<data::FeatureAnswers>& into) {
  for (const nlohmann::json& each : list) {
    data::FeatureAnswers answers{.feature = each[0], .null_score = each[1], .candidates = {}};
    for (const nlohmann::json& span : each[2])
      answers.candidates.push_back({.start = span[0], .end = span[1], .score = span[2]});
    into.push_back(std::move(answers));
  }
}

class Squad : public Metric {
 public:
  Squad(std::shared_ptr<const data::SquadDataset> dataset,
        std::shared_ptr<const std::vector<corpora::Question>> questions)
      : dataset_(std::move(dataset)), questions_(std::move(questions)) {
    options_.may_be_empty = corpora::has_impossible(*questions_);
  }

  void add(const at::Tensor& output, const tensor::Batch& batch) override {
    collect_spans(*dataset_, output, batch, options_, spans_);
    // The answer is a best span of some window: no need to send the others.
    for (size_t i = spans_.size() - static_cast<size_t>(batch.size()); i < spans_.size(); ++i) {
      if (spans_[i].candidates.size() > kSent) spans_[i].candidates.resize(kSent);
    }
  }

  void conclude(comm::Group& group, record::EvalRecord& record) override {
    std::vector<data::FeatureAnswers> all;
    for (int rank = 0; rank < group.size(); ++rank) {
      const std::string mine = rank == group.rank() ? to_json(spans_).dump() : "";
      append(nlohmann::json::parse(comm::broadcast_text(group, mine, rank)), all);
    }
    const std::vector<std::string> answers = data::final_answers(*dataset_, all, options_);
    std::map<std::string, std::string> predictions;
    for (size_t i = 0; i < questions_->size(); ++i) predictions[(*questions_)[i].id] = answers[i];
    const corpora::SquadScore score = corpora::score_predictions(*questions_, predictions);
    record.measures["exact_match"] = score.exact_match;
    record.measures["f1"] = score.f1;
    record.examples = score.total;
  }

 private:
  static constexpr size_t kSent = 3;
  std::shared_ptr<const data::SquadDataset> dataset_;
  std::shared_ptr<const std::vector<corpora::Question>> questions_;  ///< a metric may outlive what made it
  data::AnswerOptions options_;
  std::vector<data::FeatureAnswers> spans_;
};

}  // namespace

void collect_spans(const data::SquadDataset& dataset, const at::Tensor& output, const tensor::Batch& batch,
                   const data::AnswerOptions& options, std::vector<data::FeatureAnswers>& into) {
  const at::Tensor logits_2BL = output.to(at::kCPU, at::kFloat).permute({2, 0, 1}).contiguous();
  const int64_t rows = output.size(0), length = output.size(1);
  const float* const first = logits_2BL.data_ptr<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const float> starts(first + row * length, static_cast<size_t>(length));
    const std::span<const float> ends(first + (rows + row) * length, static_cast<size_t>(length));
    into.push_back(data::best_spans(dataset, batch.ids[static_cast<size_t>(row)], starts, ends, options));
  }
}

MakeMetric squad(std::shared_ptr<const data::SquadDataset> dataset,
                 std::vector<corpora::Question> questions) {
  const auto kept = std::make_shared<const std::vector<corpora::Question>>(std::move(questions));
  return [dataset = std::move(dataset), kept] { return std::make_unique<Squad>(dataset, kept); };
}

}  // namespace syncopate::train
