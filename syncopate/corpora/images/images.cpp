#include "syncopate/corpora/images/images.h"

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

Normalisation normalisation_of(const ImageSet& set, int64_t channels) {
  if (set.size() == 0) throw DataError("there are no images to take the mean of; check the data");
  const auto image = static_cast<int64_t>(set.pixels.size()) / set.size();
  const int64_t plane = image / channels;
  Normalisation found;
  for (int64_t channel = 0; channel < channels; ++channel) {
    std::array<int64_t, 256> counts{};  // whole numbers, so that the order of images does not matter
    for (int64_t i = 0; i < set.size(); ++i) {
      const uint8_t* pixel = set.pixels.data() + i * image + channel * plane;
      for (int64_t k = 0; k < plane; ++k) ++counts[pixel[k]];
    }
    const auto total = static_cast<double>(set.size() * plane);
    double mean = 0, variance = 0;
    for (size_t v = 0; v < 256; ++v)
      mean += static_cast<double>(counts[v]) / total * static_cast<double>(v) / 255;
    for (size_t v = 0; v < 256; ++v) {
      const double away = static_cast<double>(v) / 255 - mean;
      variance += static_cast<double>(counts[v]) / total * away * away;
    }
    found.mean.push_back(mean);
    found.deviation.push_back(variance > 1e-12 ? std::sqrt(variance) : 1.0);
  }
  return found;
}

void hold_out_tenth(const ImageSet& set, ImageTask& task) {
  const auto image = static_cast<size_t>(task.pixels());
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < set.labels.size(); ++i) {
    const std::string_view bytes(reinterpret_cast<const char*>(set.pixels.data()) + i * image, image);
    keys.push_back(stable_hash(bytes) ^ set.labels[i]);
  }
  const std::vector<char> held = held_out(keys, a_tenth(keys.size()));
  for (size_t i = 0; i < held.size(); ++i) {
    ImageSet& into = held[i] != 0 ? task.test : task.train;
    const auto begin = set.pixels.begin() + static_cast<std::ptrdiff_t>(i * image);
    into.pixels.insert(into.pixels.end(), begin, begin + static_cast<std::ptrdiff_t>(image));
    into.labels.push_back(set.labels[i]);
  }
}

}  // namespace syncopate::corpora
