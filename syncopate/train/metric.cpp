#include "syncopate/train/metric.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace syncopate::train {
namespace {

class Classification : public Metric {
 public:
  explicit Classification(ClassificationOptions options)
      : options_(std::move(options)),
        confusion_(at::zeros({options_.classes, options_.classes}, at::kDouble)),
        sums_(at::zeros({1 + 2 * static_cast<int64_t>(options_.parts.size())}, at::kDouble)) {}

  void add(const at::Tensor& output, const tensor::Batch& batch) override {
    const at::Tensor logits_BC = output.to(at::kCPU, at::kFloat), labels_B = batch.at("labels").to(at::kCPU);
    const at::Tensor answers_B = logits_BC.argmax(-1);
    auto confusion = confusion_.accessor<double, 2>();
    auto sums = sums_.accessor<double, 1>();
    for (int64_t i = 0; i < batch.size(); ++i) {
      const auto label = labels_B[i].item<int64_t>(), answer = answers_B[i].item<int64_t>();
      confusion[label][answer] += 1;
      const int64_t id = batch.ids[static_cast<size_t>(i)];
      for (size_t p = 0; p < options_.parts.size(); ++p) {
        if (id < options_.parts[p].begin || id >= options_.parts[p].end) continue;
        sums[static_cast<int64_t>(1 + 2 * p)] += label == answer ? 1 : 0;
        sums[static_cast<int64_t>(2 + 2 * p)] += 1;
      }
    }
    if (options_.top > 0 && batch.size() > 0) {
      const at::Tensor best = std::get<1>(logits_BC.topk(std::min(options_.top, options_.classes), -1));
      sums[0] += best.eq(labels_B.unsqueeze(1)).any(1).sum().item<double>();
    }
  }

  void conclude(comm::Group& group, record::EvalRecord& record) override {
    group.all_reduce(confusion_, comm::Op::kSum).wait();
    group.all_reduce(sums_, comm::Op::kSum).wait();
    const auto confusion = confusion_.accessor<double, 2>();
    double total = 0, right = 0, f1 = 0, seen = 0;
    for (int64_t c = 0; c < options_.classes; ++c) {
      double truths = 0, answers = 0;
      for (int64_t other = 0; other < options_.classes; ++other) {
        truths += confusion[c][other];
        answers += confusion[other][c];
      }
      total += truths;
      right += confusion[c][c];
      if (truths + answers == 0) continue;
      seen += 1;
      f1 += 2 * confusion[c][c] / (truths + answers);
    }
    record.measures["accuracy"] = right / std::max(1.0, total);
    record.measures["macro_f1"] = f1 / std::max(1.0, seen);
    const auto sums = sums_.accessor<double, 1>();
    if (options_.top > 0)
      record.measures[fmt::format("top{}", options_.top)] = sums[0] / std::max(1.0, total);
    for (size_t p = 0; p < options_.parts.size(); ++p) {
      const auto at = static_cast<int64_t>(1 + 2 * p);
      if (sums[at + 1] > 0) record.measures["accuracy_" + options_.parts[p].name] = sums[at] / sums[at + 1];
    }
    for (int64_t c = 0; c < options_.classes; ++c) {
      auto& row = record.confusion.emplace_back();
      for (int64_t other = 0; other < options_.classes; ++other)
        row.push_back(static_cast<int64_t>(confusion[c][other]));
    }
  }

 private:
  ClassificationOptions options_;
  at::Tensor confusion_;  ///< [truth, answer]
  at::Tensor sums_;       ///< among the best; then right and all of each part
};

class Perplexity : public Metric {
 public:
  explicit Perplexity(bool shifted) : shifted_(shifted), sums_(at::zeros({2}, at::kDouble)) {}

  void add(const at::Tensor& output, const tensor::Batch& batch) override {
    at::Tensor answers = output.argmax(-1), labels = batch.at("labels");
    if (shifted_) {
      const int64_t length = labels.size(1);
      if (length < 2) return;
      answers = answers.narrow(1, 0, length - 1);
      labels = labels.narrow(1, 1, length - 1);
    }
    sums_[0] += answers.eq(labels).sum().item<double>();
    sums_[1] += labels.ge(0).sum().item<double>();
  }

  void conclude(comm::Group& group, record::EvalRecord& record) override {
    group.all_reduce(sums_, comm::Op::kSum).wait();
    record.measures["perplexity"] = std::exp(record.loss);
    record.measures["token_accuracy"] = sums_[0].item<double>() / std::max(1.0, sums_[1].item<double>());
  }

 private:
  bool shifted_;
  at::Tensor sums_;  ///< right, asked
};

}  // namespace

MakeMetric classification(ClassificationOptions options) {
  return [options = std::move(options)] { return std::make_unique<Classification>(options); };
}

MakeMetric perplexity(bool shifted) {
  return [shifted] { return std::make_unique<Perplexity>(shifted); };
}

}  // namespace syncopate::train
