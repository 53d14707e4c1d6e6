#include "syncopate/corpora/text_task_reader.h"

#include <utility>

namespace syncopate::corpora {
namespace {

class ReaderOfMemory : public TextTaskReader {
 public:
  explicit ReaderOfMemory(TextTask task) : task_(std::move(task)) {
    found_ = {.labels = task_.labels,
              .parts = task_.parts,
              .notes = task_.notes,
              .training_notes = task_.training_notes,
              .train = static_cast<int64_t>(task_.train.size()),
              .test = static_cast<int64_t>(task_.test.size())};
    read([this](Split, const TextExample& example) {
      found_.letters += static_cast<int64_t>(example.a.size() + example.b.size());
    });
  }

  void read(const UseExample& use, std::optional<Split> only = {}) const override {
    for (const auto& [split, examples] :
         {std::pair{Split::kTrain, &task_.train}, {Split::kTest, &task_.test}}) {
      if (only && only != split) continue;
      for (const TextExample& example : *examples) use(split, example);
    }
  }

 private:
  const TextTask task_;
};

}  // namespace

std::unique_ptr<const TextTaskReader> reader_of(TextTask task) {
  return std::make_unique<const ReaderOfMemory>(std::move(task));
}

TextTask read_whole(const TextTaskReader& reader, std::string name) {
  const TextTaskReader::Found& found = reader.found();
  TextTask task{.name = std::move(name),
                .labels = found.labels,
                .train = {},
                .test = {},
                .parts = found.parts,
                .notes = found.notes,
                .training_notes = found.training_notes};
  task.train.reserve(static_cast<size_t>(found.train));
  task.test.reserve(static_cast<size_t>(found.test));
  reader.read([&](Split split, const TextExample& example) {
    (split == Split::kTest ? task.test : task.train).push_back(example);
  });
  return task;
}

}  // namespace syncopate::corpora
