#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace syncopate::corpora {

/// Images of one size and the numbers of their labels.
struct ImageSet {
  std::vector<uint8_t> pixels;  ///< one image after the other, each channel by channel, row by row
  std::vector<uint8_t> labels;
  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

/// Classification of images. Examples are in their files' order.
struct ImageTask {
  std::string name;
  int64_t channels = 0, height = 0, width = 0;
  std::vector<std::string> labels;  ///< by number
  ImageSet train;                   ///< empty unless loaded for training
  ImageSet test;
  std::vector<std::string> notes;  ///< what was chosen, one sentence each, for the user

  int64_t pixels() const { return channels * height * width; }  ///< of one image
};

/// What brings each channel, its pixels taken as 0 to 1, to mean 0 and deviation 1.
struct Normalisation {
  std::vector<double> mean;
  std::vector<double> deviation;
};

/// The normalisation of a set's own pixels. A channel that does not vary has deviation 1. Throws DataError
/// for an empty set.
Normalisation normalisation_of(const ImageSet& set, int64_t channels);

/// Moves a fixed tenth of `set` (one at least), by the hash of image and label, to `task.test` and the others
/// to `task.train`, both in the order given.
void hold_out_tenth(const ImageSet& set, ImageTask& task);

}  // namespace syncopate::corpora
