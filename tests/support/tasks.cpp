#include "tests/support/tasks.h"

#include <array>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/support.h"

namespace syncopate::test {
namespace {

using Random = std::mt19937;  // its numbers are laid down by the standard, distributions are not

size_t below(Random& random, size_t count) { return random() % count; }

template <size_t N>
const char* one_of(Random& random, const std::array<const char*, N>& words) {
  return words[below(random, N)];
}

constexpr std::array kColours{"red", "blue", "green", "white", "black", "yellow"};
constexpr std::array kAnimals{"cat", "dog", "horse", "bird", "fish", "mouse", "sheep"};
constexpr std::array kDeeds{"sleeps", "runs", "sings", "waits", "swims", "eats"};
constexpr std::array kPlaces{"house", "garden", "river", "market", "wood"};

std::string sentence(Random& random) {
  return std::string("the ") + one_of(random, kColours) + " " + one_of(random, kAnimals) + " " +
         one_of(random, kDeeds) + " near the " + one_of(random, kPlaces);
}

std::string documents(int count, uint32_t seed) {
  Random random(seed);
  std::string text;
  for (int i = 0; i < count; ++i) {
    std::string line = sentence(random);
    if (below(random, 3) > 0) line = std::string(one_of(random, kColours)) + " " + one_of(random, kAnimals);
    if (below(random, 4) == 0) line += std::string(" and ") + one_of(random, kAnimals);
    text += line + "\n";
  }
  return text;
}

std::string questions(int paragraphs, const std::string& name, uint32_t seed) {
  Random random(seed);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (int p = 0; p < paragraphs; ++p) {
    std::string context;
    nlohmann::ordered_json asked = nlohmann::ordered_json::array();
    const size_t sentences = 1 + below(random, 6);
    for (size_t s = 0; s < sentences; ++s) {
      const std::string colour = one_of(random, kColours), animal = one_of(random, kAnimals);
      const std::string place = one_of(random, kPlaces);
      context += (s == 0 ? "" : " ");
      const size_t begin = context.size();
      context += "The " + colour + " " + animal + " waits near the " + place + ".";
      if (s % 2 == 1) continue;
      const bool where = below(random, 2) == 0;
      const std::string answer = where ? "the " + place : colour;
      nlohmann::ordered_json answers = {
          {{"text", answer}, {"answer_start", context.find(answer, where ? context.rfind(" the ") : begin)}}};
      asked.push_back(
          {{"id", name + "-" + std::to_string(p) + "-" + std::to_string(s)},
           {"question", where ? "Where does the " + animal + " wait?" : "What colour is the " + animal + "?"},
           {"answers", std::move(answers)}});
    }
    list.push_back({{"context", context}, {"qas", std::move(asked)}});
  }
  nlohmann::ordered_json file{{"version", "1.1"}};
  file["data"] = nlohmann::ordered_json::array();
  file["data"].push_back({{"title", name}, {"paragraphs", std::move(list)}});
  return file.dump(1);
}

std::string rows(int count, uint32_t seed) {
  Random random(seed);
  std::string text = "text,label\n";
  for (int i = 0; i < count; ++i) {
    const size_t label = below(random, 3);
    // In parts: a literal before a temporary makes GCC 12 see an overlap that is not there.
    text.append("\"").append(kColours[label]).append(", ").append(sentence(random)).append("\",");
    text.append(kPlaces[label]).append("\n");
  }
  return text;
}

std::string idx_header(std::initializer_list<int> sizes) {
  std::string bytes{0, 0, 8, static_cast<char>(sizes.size())};
  for (const int size : sizes) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(size >> shift & 0xFF));
  }
  return bytes;
}

void write_images(const std::filesystem::path& folder, const std::string& prefix, int count, uint32_t seed) {
  constexpr int kSide = 12;
  Random random(seed);
  std::string images = idx_header({count, kSide, kSide}), labels = idx_header({count});
  for (int i = 0; i < count; ++i) {
    const int label = static_cast<int>(below(random, 10));
    labels.push_back(static_cast<char>(label));
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        // A bar for each class, over noise: mirrored and shifted it is still the same bar.
        const bool bar =
            label < 5 ? y / 2 == label : (x / 2 == label - 5 || (kSide - 1 - x) / 2 == label - 5);
        images.push_back(static_cast<char>((bar ? 150 : 0) + below(random, 100)));
      }
    }
  }
  write_text(folder / (prefix + "-images-idx3-ubyte"), images);
  write_text(folder / (prefix + "-labels-idx1-ubyte"), labels);
}

}  // namespace

std::string small_corpus(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_text(folder / "train.txt", documents(160, 1));
  write_text(folder / "valid.txt", documents(50, 2));
  return folder;
}

std::string small_squad(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_text(folder / "train.json", questions(20, "train", 3));
  write_text(folder / "dev.json", questions(9, "dev", 4));
  return folder;
}

std::string small_table(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_text(folder / "train.csv", rows(61, 5));
  write_text(folder / "dev.csv", rows(29, 6));
  return folder;
}

std::string small_idx(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_images(folder, "train", 47, 7);
  write_images(folder, "t10k", 23, 8);
  return folder;
}

}  // namespace syncopate::test
