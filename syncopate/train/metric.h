#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/record/record.h"
#include "syncopate/tensor/batch.h"

namespace syncopate::train {

/// A task's official score, taken batch by batch. One per evaluation.
class Metric {
 public:
  virtual ~Metric() = default;
  /// A batch of this rank's share and the model's output for it, both on the model's device.
  virtual void add(const at::Tensor& output, const tensor::Batch& batch) = 0;
  /// Brings the ranks' shares together and writes the measures into `record`, whose mean loss is set.
  /// Collective; the same on every rank.
  virtual void conclude(comm::Group& group, record::EvalRecord& record) = 0;
};

using MakeMetric = std::function<std::unique_ptr<Metric>()>;

/// Part of a test set that is scored by itself as well: accuracy_<name>.
struct ScoredPart {
  std::string name;
  int64_t begin = 0, end = 0;  ///< example numbers
};

/// Accuracy, macro-F1 (the mean over classes of F1; a class that neither occurs nor is answered does not
/// count), the confusion matrix and, with `top` above 0, how often the label is among the `top` best.
struct ClassificationOptions {
  int64_t classes = 2;
  int64_t top = 0;
  std::vector<ScoredPart> parts;
};
MakeMetric classification(ClassificationOptions options);

/// exp(mean loss per token), and how often the best word is the right one. `shifted`: position l of the
/// output answers label l + 1.
MakeMetric perplexity(bool shifted);

}  // namespace syncopate::train
