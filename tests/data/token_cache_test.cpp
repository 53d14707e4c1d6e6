#include "syncopate/data/token_cache.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <system_error>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/file_lock.h"
#include "syncopate/corpora/corpus.h"
#include "syncopate/data/causal_dataset.h"
#include "syncopate/data/file_hashes.h"
#include "syncopate/data/masked_dataset.h"
#include "syncopate/data/token_file.h"
#include "syncopate/text/bpe_training.h"
#include "syncopate/text/vocabulary.h"
#include "tests/support/child.h"
#include "tests/support/support.h"

namespace syncopate::data {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int64_t>;
using test::write_text;

const text::ByteBpe& bpe() {
  static const text::ByteBpe kBpe(text::train_bpe({"the cat and the hat and the dog"}, {.size = 280}));
  return kBpe;
}

std::string some_lines(int count, int seed = 0) {
  const std::vector<std::string> words{"the", "cat", "and", "hat", "dog", "café", "runs", "away"};
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (int w = 0; w < 3 + i % 9; ++w)
      text += words[static_cast<size_t>(i * 31 + w * w * 7 + i / 5 + seed) % words.size()] + " ";
    text += std::to_string(i) + "\n";
  }
  return text;
}

TokenCache cache_of(const fs::path& folder, const fs::path& data, double share = 0) {
  return {folder,
          {.source = {.path = data},
           .validation = {.share = share, .path = {}},
           .look = [](corpora::CorpusReader& reader) { return reader.notes(); }},
          {}};
}

CachedTokens tokens_of(const fs::path& folder, const fs::path& data, double share = 0) {
  return cache_of(folder, data, share).tokens("bpe", bpe().size(), CausalDataset::appender(bpe()));
}

std::vector<int32_t> all_of(const Tokens& tokens) {
  std::vector<int32_t> pieces(static_cast<size_t>(tokens.size()));
  tokens.read(0, pieces);
  return pieces;
}

/// The folders of tokens in a cache.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  return found;
}

/// The file that a cache of one corpus is locked by.
fs::path lock_of(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".lock") return entry.path();
  }
  return {};
}

bool says(const CachedTokens& tokens, const std::string& part) {
  return std::any_of(tokens.notes.begin(), tokens.notes.end(),
                     [&](const std::string& note) { return note.find(part) != note.npos; });
}

void flip_a_bit(const fs::path& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 4);
  file.seekp(at);
  file.put(byte);
}

/// What is kept of some file, one that cannot be written among it; `made` counts how often it was tried.
KeptFolder::Recipe unwritable(int& made, const std::function<void(const fs::path&)>& look = {}) {
  return {.what = "it", .names = {"words"}, .room = 0, .make = [&made, look](const fs::path& folder) {
            ++made;
            if (look) look(folder);
            throw CannotWrite(ENOSPC, std::generic_category());
            return nlohmann::json();
          }};
}

class TokenCacheFiles : public testing::Test {
 protected:
  void SetUp() override { write_text(data_, some_lines(500)); }
  /// Where this machine writes what is not yet whole.
  fs::path half_written_here() {
    fs::path seen;
    int made = 0;
    KeptFolder kept(cache_, {data_}, "data", false);
    EXPECT_THROW(kept.entry(unwritable(made, [&](const fs::path& folder) { seen = folder; })),
                 CacheUnavailable);
    return seen;
  }
  /// What another machine left so, last touched so many hours ago.
  fs::path half_written(const std::string& whose, int hours_of_file, int hours_of_folder) {
    const fs::path folder = fs::path(lock_of(cache_)).replace_extension("." + whose + ".writing");
    fs::create_directories(folder);
    write_text(folder / "train.tokens", "half");
    const auto now = fs::file_time_type::clock::now();
    fs::last_write_time(folder / "train.tokens", now - std::chrono::hours(hours_of_file));
    fs::last_write_time(folder, now - std::chrono::hours(hours_of_folder));
    return folder;
  }
  test::TempDir folder_;
  fs::path data_ = folder_ / "data.txt", cache_ = folder_ / "cache";
};

TEST_F(TokenCacheFiles, HoldTheTokensThatMemoryHolds) {
  for (const double share : {0.0, 0.1}) {
    corpora::Corpus corpus = corpora::load_corpus({.path = data_}, corpora::Purpose::kTrain);
    std::vector<std::string> held;
    if (share > 0) held = corpora::hold_out_documents(corpus.train, share).documents;
    const CachedTokens first = tokens_of(cache_, data_, share), second = tokens_of(cache_, data_, share);
    EXPECT_TRUE(says(first, "tokens kept in ")) << share;
    EXPECT_TRUE(says(second, "tokens read from ")) << share;
    EXPECT_TRUE(says(second, "held out as the test split")) << "what the corpus said is said again";
    for (const CachedTokens& found : {first, second}) {
      const auto expect_same = [&](const Tokens& tokens, const std::vector<std::string>& documents) {
        const std::vector<int32_t> expected = token_stream(documents, CausalDataset::appender(bpe()));
        EXPECT_EQ(all_of(tokens), expected);
        const MemoryTokens memory(expected);
        for (int64_t k = 0; k <= std::min(Tokens::kMostDropped, tokens.size()); ++k)
          EXPECT_EQ(tokens.fingerprint(tokens.size() - k), memory.fingerprint(tokens.size() - k)) << k;
        EXPECT_TRUE(expected.empty() ||
                    memory.fingerprint(tokens.size() - 1) != memory.fingerprint(tokens.size()))
            << "the foil";
      };
      expect_same(*found.train, corpus.train);
      expect_same(*found.test, corpus.test);
      expect_same(*found.validation, held);
    }
  }
  EXPECT_EQ(entries_of(cache_).size(), 2U) << "another share, other tokens";
}

TEST_F(TokenCacheFiles, GiveTheSameBatchesAndFingerprints) {
  const corpora::Corpus corpus = corpora::load_corpus({.path = data_}, corpora::Purpose::kTrain);
  const CachedTokens found = tokens_of(cache_, data_);
  for (const int64_t length : {5, 16, 61, 64}) {
    const CausalDataset memory(corpus.train, bpe(), length), file(found.train, bpe(), length);
    ASSERT_EQ(memory.size(), file.size());
    EXPECT_EQ(memory.fingerprint(), file.fingerprint()) << length;
    const Ids ids{3, 0, memory.size() - 1};
    EXPECT_TRUE(at::equal(memory.collate(ids, 1).at("labels"), file.collate(ids, 1).at("labels")));
    EXPECT_FALSE(at::equal(memory.collate(ids, 1).at("labels"),
                           file.collate(Ids{3, 1, memory.size() - 1}, 1).at("labels")))
        << "the foil";
  }
  const text::WordPiece words(text::train_vocabulary({some_lines(500)}, {.size = 100}),
                              text::rules_for(true));
  const CachedTokens pieces =
      cache_of(cache_, data_).tokens("words", words.size(), MaskedDataset::appender(words));
  for (const int64_t length : {7, 32, 50}) {
    const MaskedDataset memory(corpus.train, words, {.max_length = length, .seed = 3}),
        file(pieces.train, words, {.max_length = length, .seed = 3});
    ASSERT_EQ(memory.size(), file.size());
    EXPECT_EQ(memory.fingerprint(), file.fingerprint()) << length;
    const Ids ids{2, memory.size() - 1, 1};
    for (const char* field : {"input_ids", "masked", "labels"})
      EXPECT_TRUE(at::equal(memory.collate(ids, 4).at(field), file.collate(ids, 4).at(field))) << field;
    EXPECT_FALSE(at::equal(memory.collate(ids, 4).at("input_ids"), file.collate(ids, 5).at("input_ids")))
        << "the foil: another draw";
  }
}

TEST_F(TokenCacheFiles, TakeTwoBytesAPieceWhereTheyDo) {
  const std::vector<int32_t> pieces{0, 1, 65535, 7}, large{0, 65536, 2147483647};
  for (const auto& [given, size] : {std::pair{pieces, int64_t{65536}}, std::pair{large, int64_t{1} << 31}}) {
    const fs::path path = folder_ / std::to_string(size);
    TokenFileWriter writer(path, size);
    writer.append(given);
    writer.finish();
    const auto file = TokenFile::open(path);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->sound());
    EXPECT_EQ(all_of(*file), given);
    EXPECT_EQ(fs::file_size(path), 4096 + given.size() * (size > 65536 ? 4 : 2));
  }
  const auto cut = TokenFile::open(folder_ / "65536");
  fs::resize_file(folder_ / "65536", 4096 + 4);
  std::vector<int32_t> some(2);
  cut->read(0, some);
  EXPECT_EQ(some, (std::vector<int32_t>{0, 1}));
  EXPECT_THROW(cut->read(1, some), DataError) << "cut short while it is used";
  TokenFileWriter writer(folder_ / "narrow", 65536);
  EXPECT_THROW(writer.append(large), InternalError);
  EXPECT_FALSE(TokenFile::open(folder_ / "narrow")) << "not finished";
  TokenFileWriter full("/dev/full", 65536);
  full.append(pieces);
  EXPECT_THROW(full.finish(), CannotWrite);
}

TEST_F(TokenCacheFiles, ThatAreDamagedAreMadeAgain) {
  const std::vector<int32_t> sound = all_of(*tokens_of(cache_, data_).train);
  const fs::path entry = entries_of(cache_).at(0), file = entry / "train.tokens";
  const auto expect_remade = [&](const std::string& what) {
    const CachedTokens again = tokens_of(cache_, data_);
    EXPECT_TRUE(says(again, "was damaged and has been made again")) << what;
    EXPECT_EQ(all_of(*again.train), sound) << what;
    EXPECT_FALSE(says(tokens_of(cache_, data_), "damaged")) << what;
  };
  flip_a_bit(file, 5001);
  expect_remade("a bit of the pieces");
  flip_a_bit(file, 17);
  expect_remade("a bit of the first page");
  fs::resize_file(file, fs::file_size(file) - 2);
  expect_remade("cut short");
  fs::remove(entry / "test.tokens");
  expect_remade("a file is missing");
  write_text(entry / "note.json", "{}");
  expect_remade("the notes");
  fs::rename(entry, half_written_here());
  const CachedTokens fresh = tokens_of(cache_, data_);
  EXPECT_TRUE(says(fresh, "tokens kept in ")) << "half-written: as if nothing were there";
  EXPECT_EQ(entries_of(cache_).size(), 1U) << "and what was left is gone";
}

TEST_F(TokenCacheFiles, OfOtherMachinesAreSweptOnceNobodyWritesThem) {
  tokens_of(cache_, data_);
  const fs::path old = half_written("gone", 30, 30), older = half_written("long-gone", 90, 90),
                 busy = half_written("busy", 3, 30), begun = half_written("begun", 30, 3);
  const fs::path of_others = cache_ / "0123456789abcdef.gone.writing", file = old.parent_path() / "x.writing";
  fs::copy(old, of_others);
  fs::last_write_time(of_others, fs::last_write_time(old));
  fs::last_write_time(of_others / "train.tokens", fs::last_write_time(old));
  write_text(file, "");
  EXPECT_TRUE(says(tokens_of(cache_, data_), "tokens read from ")) << "also where nothing new is made";
  EXPECT_FALSE(fs::exists(old));
  EXPECT_FALSE(fs::exists(older));
  EXPECT_TRUE(fs::exists(busy)) << "the foil: its file may still be written";
  EXPECT_TRUE(fs::exists(begun)) << "the foil: it was begun anew";
  EXPECT_TRUE(fs::exists(of_others)) << "of other files";
  EXPECT_TRUE(fs::exists(file));
}

TEST_F(TokenCacheFiles, AreRefusedByADiskWithTooLittleRoomOnceItIsTidy) {
  const fs::path mine = half_written_here();
  fs::create_directories(mine);
  write_text(mine / "train.tokens", "half");
  const fs::path old = half_written("gone", 30, 30);
  KeptFolder kept(cache_, {data_}, "data", false);
  int made = 0;
  KeptFolder::Recipe recipe = unwritable(made);
  recipe.room = 1e18;
  try {
    kept.entry(recipe);
    ADD_FAILURE() << "nobody has so much";
  } catch (const CacheUnavailable& error) {
    EXPECT_NE(std::string(error.what()).find("it would need about 1e+06 TB, but "), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(made, 0);
  EXPECT_TRUE(entries_of(cache_).empty()) << "what was in the way is gone, whoever left it: " << old;
}

TEST_F(TokenCacheFiles, ThatAnotherMachineWasFirstToMakeAreRead) {
  KeptFolder kept(cache_, {data_}, "data", false), theirs(folder_ / "theirs", {data_}, "data", false);
  const auto recipe = [](const std::function<void()>& meanwhile) {
    return KeptFolder::Recipe{
        .what = "it", .names = {"words"}, .room = 0, .make = [meanwhile](const fs::path& folder) {
          TokenFileWriter writer(token_file(folder, "words"), 9);
          writer.append(std::vector<int32_t>{1, 2, 3});
          writer.finish();
          meanwhile();
          return nlohmann::json("note");
        }};
  };
  theirs.entry(recipe([] {}));
  const fs::path made = entries_of(folder_ / "theirs").at(0);
  const auto found = kept.entry(recipe([&] { fs::copy(made, cache_ / made.filename()); }));
  EXPECT_EQ(all_of(*found.files.at(0)), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(found.notes, std::vector<std::string>{"tokens read from " + (cache_ / made.filename()).string()});
  EXPECT_EQ(entries_of(cache_).size(), 1U) << "theirs alone";
}

TEST_F(TokenCacheFiles, AreReadWholeOncePerStartOfTheMachine) {
  tokens_of(cache_, data_);
  const fs::path checked = entries_of(cache_).at(0) / "checked";
  std::ifstream told("/proc/sys/kernel/random/boot_id");
  std::string boot;
  ASSERT_TRUE(std::getline(told, boot));
  std::string state = test::read_text(checked);
  ASSERT_NE(state.find(boot), std::string::npos);
  const std::string stamp = stamp_of(checked);
  EXPECT_TRUE(says(tokens_of(cache_, data_), "tokens read from "));
  EXPECT_EQ(stamp_of(checked), stamp) << "nobody looked again";
  const std::string mine = state;
  state.replace(state.find(boot), boot.size(), "another");
  write_text(checked, state);
  EXPECT_TRUE(says(tokens_of(cache_, data_), "tokens read from "));
  EXPECT_EQ(test::read_text(checked), state + mine)
      << "the foil: read again, and noted beside another machine's";
  for (int i = 0; i < 100; ++i) state += state.substr(0, state.find('\n') + 1);
  write_text(checked, state);
  tokens_of(cache_, data_);
  const std::string most = test::read_text(checked);
  EXPECT_EQ(std::count(most.begin(), most.end(), '\n'), 64) << "which do not become ever more";
  EXPECT_TRUE(most.ends_with(mine));
}

TEST_F(TokenCacheFiles, ThatCannotBeReadAreNotTakenForDamaged) {
  tokens_of(cache_, data_);
  for (const char* name : {"test.tokens", "note.json"}) {
    const fs::path file = entries_of(cache_).at(0) / name, aside = folder_ / "aside";
    fs::rename(file, aside);
    fs::create_directory(file);  // which opens, and cannot be read
    EXPECT_THROW(tokens_of(cache_, data_), CacheUnavailable) << name;
    fs::remove(file);
    fs::rename(aside, file);
  }
  EXPECT_TRUE(says(tokens_of(cache_, data_), "tokens read from ")) << "the entry is still there";
}

TEST_F(TokenCacheFiles, AreNotTriedAgainByThoseWhoWaitedForAFailure) {
  KeptFolder kept(cache_, {data_}, "data", false);
  int first = 0, later = 0;
  EXPECT_THROW(kept.entry(unwritable(first)), CacheUnavailable);
  EXPECT_EQ(first, 1);
  EXPECT_TRUE(entries_of(cache_).empty()) << "nothing half-written";
  EXPECT_EQ(fs::file_size(lock_of(cache_)), 1U) << "those who wait see that it failed";
  EXPECT_THROW(kept.entry(unwritable(later)), CacheUnavailable);
  EXPECT_EQ(later, 1) << "the failure was before it came";
  EXPECT_EQ(fs::file_size(lock_of(cache_)), 2U);
  // Whether the other one waits by then cannot be seen from here: soon it does.
  for (int tries = 1, in_vain = 1; in_vain > 0; ++tries) {
    ASSERT_LE(tries, 50);
    in_vain = 0;
    std::thread other;
    {
      const FileLock held(lock_of(cache_));
      other = std::thread([&] {
        KeptFolder waiting(cache_, {data_}, "data", false);
        EXPECT_THROW(waiting.entry(unwritable(in_vain)), CacheUnavailable);
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(10 * tries));
      fs::resize_file(lock_of(cache_), fs::file_size(lock_of(cache_)) + 1);  // as one that fails does
    }
    other.join();
  }
}

TEST_F(TokenCacheFiles, GiveAVocabularyThatCannotBeKept) {
  KeptFolder kept(cache_, {data_}, "data", false);
  int learned = 0;
  const auto learn = [&] { return std::string("word") + std::to_string(++learned); };
  EXPECT_EQ(kept.text("a", learn), "word1");
  fs::path sealed;
  for (const auto& entry : fs::directory_iterator(cache_)) {
    if (entry.path().extension() == ".vocabulary") sealed = entry.path();
  }
  fs::remove(sealed);
  fs::create_directory(sealed);  // so that no file takes its name
  write_text(sealed / "in the way", "");
  EXPECT_EQ(fs::file_size(lock_of(cache_)), 0U);
  EXPECT_EQ(kept.text("a", learn), "word2");
  EXPECT_EQ(fs::file_size(lock_of(cache_)), 1U) << "those who wait see that it failed";
  EXPECT_EQ(kept.text("b", learn), "word3");
  EXPECT_EQ(kept.text("b", learn), "word3") << "the foil: this one is kept";
}

TEST_F(TokenCacheFiles, RefuseDataThatChangeWhileTheyAreRead) {
  KeptFolder kept(cache_, {data_}, "data", false);
  const auto change = [&] { write_text(data_, some_lines(500, 3)); };
  const auto complaint = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  const std::string expected = "was changed while it was read";
  EXPECT_NE(complaint([&] {
              kept.text("a", [&] {
                change();
                return std::string("of the new text");
              });
            }).find(expected),
            std::string::npos);
  write_text(data_, some_lines(500));
  EXPECT_EQ(kept.text("a", [] { return std::string("of the old text"); }), "of the old text");
  EXPECT_NE(complaint([&] {
              kept.entry({.what = "a", .names = {"words"}, .room = 0, .make = [&](const fs::path& folder) {
                            TokenFileWriter(token_file(folder, "words"), 9).finish();
                            change();
                            return nlohmann::json("note");
                          }});
            }).find(expected),
            std::string::npos);
  EXPECT_TRUE(entries_of(cache_).empty());
  write_text(data_, some_lines(500));
  EXPECT_NE(complaint([&] {
              kept.text("b", [&]() -> std::string {
                change();
                throw InternalError("stumbled over it");
              });
            }).find(expected),
            std::string::npos)
      << "whatever it led to";
}

TEST_F(TokenCacheFiles, AreOfTheFilesAsTheyAreThen) {
  const fs::path alone = folder_ / "alone";
  TokenCache cache = cache_of(cache_, data_, 0.2);
  cache.vocabulary("a", [](corpora::CorpusReader& reader) {
    return std::to_string(reader.held_out().taken);  // which document goes where is known from here
  });
  const std::string before = test::read_text(data_);
  const size_t middle = before.find('\n', before.size() / 2) + 1;
  write_text(data_, before.substr(middle) + before.substr(0, middle));  // as many documents as before
  const CachedTokens made = cache.tokens("bpe", bpe().size(), CausalDataset::appender(bpe()));
  const CachedTokens anew = tokens_of(alone, data_, 0.2);
  EXPECT_EQ(all_of(*made.train), all_of(*anew.train));
  EXPECT_EQ(all_of(*made.validation), all_of(*anew.validation));
  write_text(data_, before);
  EXPECT_NE(all_of(*tokens_of(alone, data_, 0.2).train), all_of(*anew.train)) << "the foil";
}

TEST_F(TokenCacheFiles, TakeNamesThatAreNoUtf8) {
  const fs::path odd = folder_ / "caf\xe9.txt";
  fs::copy_file(data_, odd);
  const std::vector<int32_t> sound = all_of(*tokens_of(cache_, data_).train);
  EXPECT_EQ(all_of(*tokens_of(cache_, odd).train), sound);
  EXPECT_TRUE(says(tokens_of(cache_, odd), "tokens read from "));
}

TEST_F(TokenCacheFiles, ThatGrowWhileTheyAreReadAreRefused) {
  for (const int lines : {5, 500}) {  // few documents are kept, many are read again
    write_text(data_, some_lines(lines));
    corpora::CorpusReader reader({.path = data_}, {.share = 0.2, .path = {}});
    reader.held_out();
    write_text(data_, some_lines(lines + 5));
    size_t read = 0;
    const auto count = [&](const corpora::DocumentBatch& batch) { read += batch.ends.size(); };
    EXPECT_THROW(reader.read(count), DataError) << lines;
  }
}

TEST_F(TokenCacheFiles, FollowTheContentOfTheData) {
  const std::vector<int32_t> before = all_of(*tokens_of(cache_, data_).train);
  const auto size = fs::file_size(data_);
  const auto time = fs::last_write_time(data_);
  std::string text = test::read_text(data_);
  std::swap(text[0], text[4]);
  write_text(data_, text);
  fs::last_write_time(data_, time);
  ASSERT_EQ(fs::file_size(data_), size) << "neither size nor time tell";
  EXPECT_NE(all_of(*tokens_of(cache_, data_).train), before);
  EXPECT_EQ(entries_of(cache_).size(), 2U);
  std::swap(text[0], text[4]);
  write_text(data_, text);
  EXPECT_EQ(all_of(*tokens_of(cache_, data_).train), before);
  EXPECT_EQ(entries_of(cache_).size(), 2U) << "known from before";
}

TEST_F(TokenCacheFiles, AreReadOnceTheirContentIsKnown) {
  const fs::path book = folder_ / "book";
  time_t now = std::time(nullptr);
  const auto hash = [&] { return hashes_of({data_}, book, now).at(0); };
  const std::string fresh = hash();
  EXPECT_EQ(test::read_text(book).find(stamp_of(data_)), std::string::npos) << "changed a moment ago";
  now += 60;
  EXPECT_EQ(hash(), fresh);
  ASSERT_NE(test::read_text(book).find(stamp_of(data_)), std::string::npos);
  std::string text = test::read_text(book);
  text.replace(text.find(fresh), fresh.size(), std::string("known"));
  write_text(book, text);
  EXPECT_EQ(hash(), "known") << "by its stamp alone";
  const auto size = fs::file_size(data_);
  const auto time = fs::last_write_time(data_);
  std::string edited = test::read_text(data_);
  std::swap(edited[0], edited[4]);
  write_text(data_, edited);
  fs::last_write_time(data_, time);
  ASSERT_TRUE(fs::file_size(data_) == size && fs::last_write_time(data_) == time) << "neither of them tells";
  const std::string after = hash();
  EXPECT_NE(after, "known") << "the system's own time does";
  EXPECT_NE(after, fresh);
  std::swap(edited[0], edited[4]);
  write_text(data_, edited);
  using namespace std::chrono_literals;
  fs::last_write_time(data_, fs::file_time_type::clock::now() + 24h);  // from an archive, say
  EXPECT_EQ(hash(), fresh);
  EXPECT_NE(test::read_text(book).find(stamp_of(data_)), std::string::npos) << "the system's time counts";
  write_text(data_, "other\n");
  EXPECT_NE(hash(), "known");
  EXPECT_NE(hash(), fresh);
}

TEST_F(TokenCacheFiles, KeepVocabularies) {
  int learned = 0;
  const auto vocabulary = [&](const std::string& what) {
    return cache_of(cache_, data_).vocabulary(what, [&](corpora::CorpusReader& reader) {
      size_t bytes = 0;
      reader.read([&](const corpora::DocumentBatch& batch) { bytes += batch.text.size(); });
      return what + std::to_string(bytes) + "-" + std::to_string(++learned);
    });
  };
  const std::string first = vocabulary("a");
  EXPECT_EQ(vocabulary("a"), first);
  EXPECT_NE(vocabulary("b"), first) << "the foil";
  EXPECT_EQ(learned, 2);
  for (const auto& entry : fs::directory_iterator(cache_)) {
    if (entry.path().extension() == ".vocabulary") flip_a_bit(entry.path(), 20);
  }
  EXPECT_EQ(vocabulary("a").substr(0, first.size() - 1), first.substr(0, first.size() - 1));
  EXPECT_EQ(learned, 3) << "damaged: learned again";
}

TEST(TokenCacheChild, DISABLED_Main) {
  const fs::path folder = test::variable("SYNCOPATE_TEST_FOLDER");
  const CachedTokens found = tokens_of(folder / "cache", folder / "data.txt");
  EXPECT_EQ(found.train->fingerprint(found.train->size()),
            std::stoull(test::variable("SYNCOPATE_TEST_FINGERPRINT")));
  if (says(found, "tokens kept in ")) write_text(folder / ("made-by-" + std::to_string(::getpid())), "");
}

TEST_F(TokenCacheFiles, AreMadeOnceByProcessesThatBeginTogether) {
  write_text(data_, some_lines(20000));
  const CachedTokens other = tokens_of(folder_ / "other", data_);
  const test::Variables variables{
      {"SYNCOPATE_TEST_FOLDER", folder_.path().string()},
      {"SYNCOPATE_TEST_FINGERPRINT", std::to_string(other.train->fingerprint(other.train->size()))}};
  std::vector<std::unique_ptr<test::Child>> children;
  for (int i = 0; i < 3; ++i) children.push_back(std::make_unique<test::Child>("TokenCacheChild", variables));
  for (const auto& child : children) EXPECT_EQ(child->wait(), 0);
  int makers = 0;
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    makers += entry.path().filename().string().starts_with("made-by-");
  EXPECT_EQ(makers, 1);
  EXPECT_EQ(entries_of(cache_).size(), 1U);
}

TEST_F(TokenCacheFiles, SayWhyTheyCannotBeMade) {
  write_text(folder_ / "file", "");
  EXPECT_THROW(tokens_of(folder_ / "file/cache", data_), CacheUnavailable);
  EXPECT_THROW(tokens_of(folder_ / "file", data_), CacheUnavailable);
  EXPECT_THROW(tokens_of("/proc/cache", data_), CacheUnavailable);
  EXPECT_THROW(tokens_of(cache_, folder_ / "absent"), DataError);
  write_text(data_, "a single document\n");
  EXPECT_THROW(tokens_of(cache_, data_), DataError);
  EXPECT_TRUE(entries_of(cache_).empty()) << "nothing half-written";
}

}  // namespace
}  // namespace syncopate::data
