#include "syncopate/corpora/wordnet/hypernym.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/corpora/wordnet/nouns.h"

namespace syncopate::corpora {
namespace {

constexpr size_t kTestSynsets = 2000;
constexpr size_t kTrainSynsets = 20000;
constexpr uint64_t kMostSteps = 3;
constexpr uint64_t kDraws = 12;  // of wrong nouns to choose from

class Pairs {
 public:
  explicit Pairs(const std::vector<Noun>& nouns) : nouns_(nouns), marks_(nouns.size(), 0) {
    for (size_t i = 0; i < nouns.size(); ++i) {
      for (const std::string& word : nouns[i].words) senses_[word].push_back(static_cast<int64_t>(i));
    }
  }

  /// The pair that follows and the one that does not; nothing for a synset that cannot give both.
  std::optional<std::pair<TextExample, TextExample>> of(int64_t subject) {
    Rng rng(noun(subject).key);
    const auto right =
        first_that([&](int64_t found) { return is_kind_of(word(subject), word(found)); }, subject,
                   draws(kMostSteps, [&] { return walk(subject, 1 + rng.below(kMostSteps), rng, up); }),
                   /*rare_first=*/true);
    if (!right) return std::nullopt;
    const uint64_t first_way = rng.below(3);
    for (uint64_t way = first_way; way < first_way + 3; ++way) {
      const auto found = draws(kDraws, [&] { return wrong_noun(subject, *right, way % 3, rng); });
      const auto wrong = first_that([&](int64_t noun) { return !is_kind_of(word(subject), word(noun)); },
                                    subject, found, /*rare_first=*/false);
      if (!wrong) continue;
      ++uses_[word(*right)];
      --uses_[word(*wrong)];
      return std::pair{example(subject, *right, 0), example(subject, *wrong, 1)};
    }
    return std::nullopt;
  }

 private:
  using Step = const std::vector<int64_t>& (*)(const Noun&);
  static const std::vector<int64_t>& up(const Noun& noun) { return noun.kinds_of; }
  static const std::vector<int64_t>& down(const Noun& noun) { return noun.kinds; }

  const Noun& noun(int64_t number) const { return nouns_[static_cast<size_t>(number)]; }
  const std::string& word(int64_t number) const { return noun(number).words.front(); }

  template <typename Draw>
  static std::vector<int64_t> draws(uint64_t count, const Draw& draw) {
    std::vector<int64_t> found;
    for (; count > 0; --count) {
      if (const std::optional<int64_t> one = draw()) found.push_back(*one);
    }
    return found;
  }

  std::optional<int64_t> wrong_noun(int64_t subject, int64_t right, uint64_t way, Rng& rng) const {
    if (way == 0) return walk(subject, 1 + rng.below(kMostSteps), rng, down);
    const std::optional<int64_t> beside = sibling(right, rng);
    return way == 1 || !beside ? beside : walk(*beside, 1, rng, down);
  }

  /// The first of `nouns` for which `fits` holds. Those most used for the other label come first, else the
  /// noun alone, without the definition, would tell most labels.
  template <typename Fits>
  std::optional<int64_t> first_that(const Fits& fits, int64_t subject, std::vector<int64_t> nouns,
                                    bool rare_first) {
    std::stable_sort(nouns.begin(), nouns.end(), [&](int64_t a, int64_t b) {
      return rare_first ? uses_[word(a)] < uses_[word(b)] : uses_[word(a)] > uses_[word(b)];
    });
    for (const int64_t one : nouns) {
      if (word(one) != word(subject) && fits(one)) return one;
    }
    return std::nullopt;
  }

  /// As many steps as there are, up to `steps`; nothing if there is none.
  std::optional<int64_t> walk(int64_t from, uint64_t steps, Rng& rng, Step step) const {
    int64_t at = from;
    for (; steps > 0 && !step(noun(at)).empty(); --steps) {
      const auto& next = step(noun(at));
      at = next[rng.below(next.size())];
    }
    if (at == from) return std::nullopt;
    return at;
  }

  /// Prefers one that has kinds of its own, as the right noun has: else a glance at the noun would tell.
  std::optional<int64_t> sibling(int64_t of, Rng& rng) const {
    const std::optional<int64_t> parent = walk(of, 1, rng, up);
    if (!parent) return std::nullopt;
    std::vector<int64_t> all, inner;
    for (const int64_t child : noun(*parent).kinds) {
      if (child == of) continue;
      all.push_back(child);
      if (!noun(child).kinds.empty()) inner.push_back(child);
    }
    const auto& choice = inner.empty() ? all : inner;
    if (choice.empty()) return std::nullopt;
    return choice[rng.below(choice.size())];
  }

  /// In any sense of `low` and any number of steps, for words have several senses and sentences have words.
  bool is_kind_of(const std::string& low, const std::string& high) {
    ++mark_;
    std::vector<int64_t> open = senses_.at(low);
    for (const int64_t sense : open) marks_[static_cast<size_t>(sense)] = mark_;
    while (!open.empty()) {
      const int64_t at = open.back();
      open.pop_back();
      for (const int64_t above : noun(at).kinds_of) {
        const auto& words = noun(above).words;
        if (std::find(words.begin(), words.end(), high) != words.end()) return true;
        if (std::exchange(marks_[static_cast<size_t>(above)], mark_) != mark_) open.push_back(above);
      }
    }
    return false;
  }

  TextExample example(int64_t low, int64_t high, int64_t label) const {
    return {.a = fmt::format("{}: {}", word(low), noun(low).definition),
            .b = fmt::format("{} is a kind of {}", with_article(word(low)), word(high)),
            .label = label};
  }

  const std::vector<Noun>& nouns_;
  std::unordered_map<std::string_view, std::vector<int64_t>> senses_;
  std::unordered_map<std::string_view, int64_t> uses_;  ///< in pairs that follow, less those in others
  std::vector<int64_t> marks_;  ///< which search met a synset last: no clearing between searches
  int64_t mark_ = 0;
};

}  // namespace

TextTask load_hypernym(const std::filesystem::path& path, Purpose purpose) {
  const std::vector<Noun> nouns = read_nouns(path);
  Pairs pairs(nouns);
  std::vector<int64_t> order(nouns.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const uint64_t left = nouns[static_cast<size_t>(a)].key, right = nouns[static_cast<size_t>(b)].key;
    return left != right ? left < right : a < b;
  });
  struct Made {
    int64_t synset;
    TextExample follows, does_not;
  };
  std::vector<Made> made;  // in the order of the hash: the first ones are tested on
  for (const int64_t synset : order) {
    if (made.size() == kTestSynsets + kTrainSynsets) break;
    if (auto both = pairs.of(synset))
      made.push_back({synset, std::move(both->first), std::move(both->second)});
  }
  if (made.size() < 2) {
    throw DataError(
        "{} gives {} pairs of nouns, too few to train and test on; give all of WordNet's data.noun",
        path.string(), 2 * made.size());
  }
  const size_t tests = std::clamp<size_t>(made.size() / 10, 1, kTestSynsets);
  const auto in_file_order = [](const Made& a, const Made& b) { return a.synset < b.synset; };
  std::sort(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(tests), in_file_order);
  std::sort(made.begin() + static_cast<std::ptrdiff_t>(tests), made.end(), in_file_order);
  TextTask task{.name = "hypernym", .labels = {"entails", "does_not"}, .train = {}, .test = {}};
  for (size_t i = 0; i < made.size(); ++i) {
    if (i >= tests && purpose != Purpose::kTrain) break;
    auto& split = i < tests ? task.test : task.train;
    split.push_back(std::move(made[i].follows));
    split.push_back(std::move(made[i].does_not));
  }
  return task;
}

}  // namespace syncopate::corpora
