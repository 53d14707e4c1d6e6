#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/corpora/task.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::tasks {

/// The texts and classes that a run learns from, held out and chosen as its spec says. They are read again
/// and again; where they are in tables, a few bytes stay for each.
class ChosenTexts {
 public:
  /// Reads the files once, and again where texts are held out, or may not be those of the test split. Throws
  /// as open_task does.
  explicit ChosenTexts(const spec::RunSpec& spec);

  const std::vector<std::string>& labels() const { return task_->found().labels; }
  const std::vector<corpora::TestPart>& parts() const { return parts_; }  ///< of the test split
  const std::vector<std::string>& notes() const { return notes_; }        ///< for the user
  bool validates() const { return validates_; }
  int64_t size() const { return size_; }  ///< texts of all splits
  double mean_letters() const;            ///< bytes of a text, about

  /// Neighbouring texts of one split, about a mebibyte of them.
  struct Batch {
    corpora::Split split = corpora::Split::kTrain;
    std::vector<corpora::TextExample> texts;
    size_t letters = 0;  ///< bytes of all

    void add(const corpora::TextExample& example) {
      letters += example.a.size() + example.b.size();
      texts.push_back(example);
    }
    bool full() const { return letters >= size_t{1} << 20 || texts.size() >= 1024; }
    bool empty() const { return texts.empty(); }
  };
  /// Gives the texts of all splits, or of one split `only`. A split's batches come in its order. Throws
  /// DataError.
  void read(const std::function<void(Batch)>& use, std::optional<corpora::Split> only = {}) const;

 private:
  std::unique_ptr<const corpora::TextTaskReader> task_, validation_;  ///< of a validation file, or none
  std::vector<std::optional<corpora::Split>> train_,
      test_;  ///< what becomes of each of the task's; none: unused
  std::vector<corpora::TestPart> parts_;
  std::vector<std::string> notes_;
  bool validates_ = false;
  int64_t size_ = 0;
};

}  // namespace syncopate::tasks
