#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/corpora/corpus.h"
#include "syncopate/corpora/images/cifar10.h"
#include "syncopate/corpora/images/idx.h"
#include "syncopate/data/causal_dataset.h"
#include "syncopate/data/image_dataset.h"
#include "syncopate/text/bpe.h"
#include "syncopate/text/bpe_training.h"
#include "syncopate/text/wordpiece.h"
#include "tests/data/fuzz.h"
#include "tests/support/fixtures.h"
#include "tests/support/image_files.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

using syncopate::test::read_text;
using Folder = std::filesystem::path;

const text::ByteBpe& small_bpe() {
  static const text::ByteBpe kBpe(text::train_bpe({"the cat and the hat and the café"}, {.size = 270}));
  return kBpe;
}

/// vocab.json or merges.txt of a small BPE.
std::string file_of_bpe(const std::string& name) {
  const syncopate::test::TempDir folder;
  small_bpe().save(folder.path());
  return read_text(folder / name);
}

/// Whatever loads must read and write any text without loss.
void use_bpe(const Folder& folder) {
  const text::ByteBpe bpe = text::ByteBpe::load(folder);
  const std::string text = "the café \xFF\xC3 <|endoftext|> and\n\n 12";
  const std::vector<int32_t> ids = bpe.encode(text);
  for (const int32_t id : ids) check(id >= 0 && id < bpe.size(), "numbers are within the vocabulary");
}

FuzzTarget bpe_target(const std::string& name) {
  return {"bpe " + name, file_of_bpe(name), [name](const std::string& bytes, const Folder& folder) {
            const std::string other = name == "vocab.json" ? "merges.txt" : "vocab.json";
            static const std::string kWords = file_of_bpe("vocab.json"), kMerges = file_of_bpe("merges.txt");
            write_fresh(folder / other, name == "vocab.json" ? kMerges : kWords);
            write_fresh(folder / name, bytes);
            use_bpe(folder);
          }};
}

/// The one-file form of the small BPE, and of a WordPiece.
std::string tokenizer_json(bool bpe) {
  const text::BpeTable& table = small_bpe().table();
  const std::vector<std::string> words = bpe ? table.words : vocabulary_of({"the", "##re", "cafe", "中"});
  nlohmann::json json{{"added_tokens", nlohmann::json::array()}};
  nlohmann::json& model = json["model"];
  for (size_t i = 0; i < words.size(); ++i) model["vocab"][words[i]] = i;
  if (bpe) {
    model.update({{"type", "BPE"}, {"merges", table.merges}});
    json["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
    json["added_tokens"].push_back({{"content", text::kEndOfText}, {"id", words.size() - 1}});
  } else {
    model.update({{"type", "WordPiece"}, {"unk_token", "[UNK]"}});
    json["normalizer"] = {{"type", "BertNormalizer"}, {"lowercase", true}, {"strip_accents", nullptr}};
    json["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
    json["added_tokens"].push_back({{"content", "[PAD]"}, {"id", 0}});
  }
  return json.dump();
}

FuzzTarget tokenizer_json_target(bool bpe) {
  return {bpe ? "bpe one file" : "wordpiece one file", tokenizer_json(bpe),
          [bpe](const std::string& bytes, const Folder& folder) {
            std::filesystem::create_directories(folder / "one");
            write_fresh(folder / "one" / "tokenizer.json", bytes);
            if (bpe) return use_bpe(folder / "one");
            const text::WordPiece tokenizer = text::WordPiece::load(folder / "one");
            for (const int32_t id : tokenizer.encode("There, the café 中文 \xFF[MASK]"))
              check(id >= 0 && id < tokenizer.size(), "numbers are within the vocabulary");
          }};
}

void use_images(corpora::ImageTask task) {
  const corpora::Normalisation normal = corpora::normalisation_of(task.train, task.channels);
  const auto shared = std::make_shared<const corpora::ImageTask>(std::move(task));
  const data::ImageDataset data(shared, data::ImageDataset::Split::kTrain,
                                {.augment = true, .pad = 1, .normalisation = normal});
  const std::vector<int64_t> ids{0, data.size() - 1};
  check(data.collate(ids, 1).size() == 2, "a batch has the size asked for");
}

/// The images (or the labels) of an MNIST folder whose other files are sound.
FuzzTarget idx_target(const std::string& name, const std::string& file, const std::string& seed) {
  return {name, seed, [file](const std::string& bytes, const Folder& folder) {
            for (const char* ending : {"", ".gz"}) {
              for (const char* split : {"train", "t10k"}) {
                for (const char* part : {"-images-idx3-ubyte", "-labels-idx1-ubyte"})
                  std::filesystem::remove(folder / (std::string(split) + part + ending));
              }
            }
            for (const char* split : {"train", "t10k"}) {
              write_fresh(folder / (std::string(split) + "-images-idx3-ubyte"), idx_file({6, 4, 5}, 1));
              write_fresh(folder / (std::string(split) + "-labels-idx1-ubyte"), idx_file({6}, 2));
            }
            if (file.ends_with(".gz")) std::filesystem::remove(folder / file.substr(0, file.size() - 3));
            write_fresh(folder / file, bytes);
            use_images(corpora::load_mnist("mnist", folder, corpora::Purpose::kTrain));
          }};
}

FuzzTarget text_target(const std::string& name, const std::string& file, const std::string& seed) {
  return {name, seed, [file](const std::string& bytes, const Folder& folder) {
            write_fresh(folder / file, bytes);
            for (const char* how : {"auto", "line", "blank"}) {
              const corpora::Corpus corpus = corpora::load_corpus(
                  {.path = folder / file, .documents = how, .text = {}, .form = {.encoding = "replace"}},
                  corpora::Purpose::kTrain);
              for (const std::string& text : corpus.train)
                check(small_bpe().decode(small_bpe().encode(text)) == text, "no text is lost");
              data::CausalDataset(corpus.train, small_bpe(), 16);
            }
          }};
}

}  // namespace

std::vector<FuzzTarget> corpus_targets() {
  const std::string book =
      "Licence\n\n*** START OF THIS PROJECT GUTENBERG EBOOK X ***\r\n\r\nIt's a café.\r\nTwo lines.\n\n"
      "中文 \t \n\n'll 12½ <|endoftext|>\n\n*** END OF THIS PROJECT GUTENBERG EBOOK X ***\nLaw\n";
  return {
      text_target("corpus text", "x.txt", book),
      text_target("corpus csv", "x.csv", "id,text\r\n1,\"a \"\"b\"\",\nc\"\r\n2,plain\r\n3,\r\n4,d\r\n"),
      text_target("corpus gz", "y.txt.gz", gzipped(book + book)),
      tokenizer_json_target(true),
      tokenizer_json_target(false),
      bpe_target("vocab.json"),
      bpe_target("merges.txt"),
      {"cifar10", cifar_records(4, 1),
       [](const std::string& bytes, const Folder& folder) {
         write_fresh(folder / "x.bin", bytes);
         use_images(corpora::load_cifar10(folder / "x.bin", corpora::Purpose::kTrain));
       }},
      idx_target("idx images", "train-images-idx3-ubyte", idx_file({6, 4, 5}, 3)),
      idx_target("idx labels", "t10k-labels-idx1-ubyte", idx_file({6}, 4)),
      idx_target("idx images gz", "t10k-images-idx3-ubyte.gz", gzipped(idx_file({6, 4, 5}, 5))),
  };
}

}  // namespace syncopate::test
