// What Hugging Face's BertForMaskedLM and BertForQuestionAnswering gave for the same folders and texts.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/data/squad_dataset.h"
#include "syncopate/nn/bert/bert_folder.h"
#include "syncopate/tensor/safetensors.h"
#include "syncopate/text/wordpiece.h"
#include "tests/golden/golden_support.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

using Json = nlohmann::json;

class HeadsOracle : public testing::Test {
 protected:
  HeadsOracle() { at::set_num_threads(1); }  // tensors this small only wait for other threads

  static Json expected_in(const std::filesystem::path& folder) {
    return Json::parse(read_text(folder / "expect.json"));
  }
};

/// The text behind the oracle's words, through our tokenizer, with the places it asks for.
tensor::Batch masked_batch(const std::filesystem::path& folder, const Json& expected) {
  const text::WordPiece tokenizer = text::WordPiece::load(folder);
  const auto ids = expected["input_ids"].get<std::vector<int64_t>>();
  std::string text;
  for (size_t i = 1; i + 1 < ids.size(); ++i) {
    const std::string piece(tokenizer.token(ids[i]));
    text += piece.starts_with("##") ? piece.substr(2) : " " + piece;
  }
  const text::Encoding encoding = tokenizer.encode(text, std::nullopt, 0);
  EXPECT_EQ(Json(encoding.ids), expected["input_ids"]) << text;
  tensor::Batch batch = batch_of(
      {{{encoding.ids.begin(), encoding.ids.end()}, {encoding.types.begin(), encoding.types.end()}, 0}});
  std::vector<int64_t> masked, labels;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto label = expected["labels"][i].get<int64_t>();
    if (label < 0) continue;
    masked.push_back(static_cast<int64_t>(i));
    labels.push_back(label);
  }
  batch.fields["masked"] = at::tensor(masked, at::kLong);
  batch.fields["labels"] = at::tensor(labels, at::kLong);
  return batch;
}

Errors masked_errors(const at::Tensor& logits_MV, const tensor::Loss& loss, const Json& expected) {
  std::vector<at::Tensor> rows;
  for (const auto& row : expected["logits_first_8_words_at_masked"])
    rows.push_back(at::tensor(row.get<std::vector<float>>()));
  const double mean = loss.sum.item<double>() / static_cast<double>(loss.count);
  return {worst_of_largest(logits_MV.narrow(1, 0, 8), at::stack(rows)),
          std::abs(mean / expected["loss"].get<double>() - 1)};
}

TEST_F(HeadsOracle, MaskedWordsMatchHuggingFace) {
  SYNCOPATE_NEED_SHARED(folder, "oracles/mlm");
  const Json expected = expected_in(folder);
  const tensor::Batch batch = masked_batch(folder, expected);
  for (const bool plain : {false, true}) {
    for (const bool whole : {false, true}) {
      const auto loaded = nn::load_bert<nn::BertMaskedLm>(folder, {});
      EXPECT_FALSE(loaded.fresh_head);
      EXPECT_TRUE(loaded.notes.empty());
      loaded.model->set_plain(plain);
      loaded.model->set_whole_last_layer(whole);
      const at::Tensor logits = loaded.model->forward(batch);
      const Errors errors = masked_errors(logits, loaded.model->loss(logits, batch), expected);
      EXPECT_LT(errors.logits, 1e-5) << plain << whole;
      EXPECT_LT(errors.loss, 1e-5) << plain << whole;
      const at::Tensor best = logits.argmax(-1);
      for (int64_t m = 0; m < best.size(0); ++m)
        EXPECT_EQ(best[m].item<int64_t>(), expected["argmax_at_masked"][static_cast<size_t>(m)]);
    }
  }
}

TEST_F(HeadsOracle, FoilsOfTheMaskedWordsMiss) {
  SYNCOPATE_NEED_SHARED(folder, "oracles/mlm");
  const Json expected = expected_in(folder);
  const auto with = [&](const std::function<void(nn::BertConfig&)>& settle,
                        const std::function<void(tensor::Batch&)>& change) {
    tensor::Batch batch = masked_batch(folder, expected);
    change(batch);
    const auto loaded = nn::load_bert<nn::BertMaskedLm>(folder, {.settle = settle});
    const at::Tensor logits = loaded.model->forward(batch);
    return masked_errors(logits, loaded.model->loss(logits, batch), expected);
  };
  const auto same = [](tensor::Batch&) {};
  EXPECT_GT(with([](nn::BertConfig& config) { config.activation = nn::Activation::kGeluTanh; }, same).logits,
            2e-5);
  EXPECT_GT(with({}, [](tensor::Batch& batch) { batch.fields["token_type_ids"].fill_(1); }).logits, 1e-3);
  EXPECT_GT(with({}, [](tensor::Batch& batch) { batch.fields["masked"] -= 1; }).logits, 1e-3);
  EXPECT_GT(with({}, [](tensor::Batch& batch) { batch.fields["labels"] += 1; }).loss, 1e-3);

  // The head by hand from the last hidden states, with and without its LayerNorm.
  const tensor::Batch batch = masked_batch(folder, expected);
  const auto loaded = nn::load_bert<nn::BertMaskedLm>(folder, {});
  loaded.model->set_whole_last_layer(true);
  std::map<std::string, at::Tensor> named;
  for (const auto& each : loaded.model->parameters()) named[each.name] = each.tensor.detach();
  const at::Tensor hidden =
      loaded.model->forward({}, batch, {0, loaded.model->depth() - 1})[0].index_select(0, batch.at("masked"));
  const std::string transform = "cls.predictions.transform.";
  const at::Tensor active =
      at::gelu(at::linear(hidden, named[transform + "dense.weight"], named[transform + "dense.bias"]));
  const at::Tensor normed = at::layer_norm(active, {32}, named[transform + "LayerNorm.weight"],
                                           named[transform + "LayerNorm.bias"], 1e-12);
  const auto errors = [&](const at::Tensor& rows) {
    const at::Tensor logits =
        at::linear(rows, named["bert.embeddings.word_embeddings.weight"], named["cls.predictions.bias"]);
    return masked_errors(logits, loaded.model->loss(logits, batch), expected).logits;
  };
  EXPECT_LT(errors(normed), 1e-5);
  EXPECT_GT(errors(active), 1e-2);
}

/// The oracle's question and its whole paragraph, whose first window it is.
data::SquadDataset question_dataset(const std::filesystem::path& folder, const Json& expected) {
  const text::WordPiece tokenizer = text::WordPiece::load(folder);
  const std::vector<std::string> contexts{expected["context"].get<std::string>()};
  const auto question = expected["question"].get<std::string>();
  const auto pieces = tokenizer.encode_with_offsets(contexts[0]);
  const auto before = static_cast<int64_t>(tokenizer.encode(question).size()) + 2;
  const auto piece = [&](const char* name) {
    return pieces[static_cast<size_t>(expected[name].get<int64_t>() - before)];
  };
  const auto begin = static_cast<size_t>(piece("start").begin), end = static_cast<size_t>(piece("end").end);
  const std::string_view context = contexts[0];
  const std::vector<corpora::Question> questions{
      {"q",
       question,
       0,
       {{std::string(context.substr(begin, end - begin)), corpora::code_points(context.substr(0, begin))}}}};
  return {questions, contexts, tokenizer, {.max_length = expected["max_length"], .stride = 16}};
}

Errors question_errors(nn::BertQuestionAnswering& model, const tensor::Batch& batch, const Json& expected) {
  const at::Tensor logits = model.forward(batch);
  const tensor::Loss loss = model.loss(logits, batch);
  const at::Tensor right = at::stack({at::tensor(expected["start_logits"].get<std::vector<float>>()),
                                      at::tensor(expected["end_logits"].get<std::vector<float>>())},
                                     1);
  return {
      worst_of_largest(logits[0], right),
      std::abs(loss.sum.item<double>() / static_cast<double>(loss.count) / expected["loss"].get<double>() -
               1)};
}

TEST_F(HeadsOracle, QuestionsMatchHuggingFace) {
  SYNCOPATE_NEED_SHARED(folder, "oracles/qa");
  const Json expected = expected_in(folder);
  const tensor::Batch batch = question_dataset(folder, expected).collate(std::vector<int64_t>{0}, 0);
  for (const bool plain : {false, true}) {
    for (const bool whole : {false, true}) {
      const auto loaded = nn::load_bert<nn::BertQuestionAnswering>(folder, {});
      EXPECT_FALSE(loaded.fresh_head);
      EXPECT_TRUE(loaded.notes.empty());
      loaded.model->set_plain(plain);
      loaded.model->set_whole_last_layer(whole);
      const Errors errors = question_errors(*loaded.model, batch, expected);
      EXPECT_LT(errors.logits, 1e-5) << plain << whole;
      EXPECT_LT(errors.loss, 1e-5) << plain << whole;
    }
  }
  const auto with = [&](const std::function<void(nn::BertConfig&)>& settle,
                        const std::function<void(tensor::Batch&)>& change) {
    tensor::Batch changed = batch;
    change(changed);
    const auto loaded = nn::load_bert<nn::BertQuestionAnswering>(folder, {.settle = settle});
    return question_errors(*loaded.model, changed, expected);
  };
  const auto same = [](tensor::Batch&) {};
  EXPECT_GT(with([](nn::BertConfig& config) { config.activation = nn::Activation::kGeluTanh; }, same).logits,
            2e-5);
  const auto no_types = [](tensor::Batch& b) {
    b.fields["token_type_ids"] = at::zeros_like(b.at("token_type_ids"));
  };
  EXPECT_GT(with({}, no_types).logits, 1e-3);
  EXPECT_GT(with({}, [](tensor::Batch& b) { std::swap(b.fields["starts"], b.fields["ends"]); }).loss, 1e-5);
  EXPECT_GT(with({}, [](tensor::Batch& b) { b.fields["ends"] = b.at("ends") + 1; }).loss, 1e-4);
}

/// Every gradient of the fast path against ATen's operations over all positions.
template <typename Head>
void expect_gradients_agree(const std::filesystem::path& folder, const tensor::Batch& batch) {
  const auto found = [&](bool plain, bool whole, const tensor::Batch& from) {
    const auto loaded = nn::load_bert<Head>(folder, {});
    loaded.model->set_plain(plain);
    loaded.model->set_whole_last_layer(whole);
    return gradients(*loaded.model, from);
  };
  const auto right = found(true, true, batch);
  for (const auto& [plain, whole] : {std::pair{false, false}, {false, true}, {true, false}}) {
    for (const auto& [name, gradient] : found(plain, whole, batch)) {
      if (name.ends_with("key.bias")) {  // zero but for rounding
        EXPECT_LT(gradient.abs().max().template item<double>(), 1e-5) << name;
        continue;
      }
      const double largest = right.at(name).abs().max().template item<double>();
      EXPECT_LT((gradient - right.at(name)).abs().max().template item<double>(), 1e-5 * largest + 1e-7)
          << name << plain << whole;
    }
  }
  tensor::Batch foil = batch;
  foil.fields["attention_mask"] = at::ones_like(batch.at("attention_mask"));
  const std::string query = "bert.encoder.layer.0.attention.self.query.weight";
  EXPECT_GT(worst_of_largest(found(false, false, foil).at(query), right.at(query)), 1e-3)
      << "padding that is read";
}

TEST_F(HeadsOracle, FastPathGradientsMatchReference) {
  SYNCOPATE_NEED_SHARED(masked, "oracles/mlm");
  SYNCOPATE_NEED_SHARED(asked, "oracles/qa");
  const auto example = [](int64_t length, int64_t seed) {
    Example made;
    for (int64_t i = 0; i < length; ++i) {
      made.ids.push_back(1000 + (seed * 7919 + i * 104729) % 20000);
      made.types.push_back(i > length / 2 ? 1 : 0);
    }
    return made;
  };
  tensor::Batch batch = batch_of({example(9, 1), example(23, 2), example(14, 3)});
  batch.fields["masked"] = at::tensor(std::vector<int64_t>{2, 8, 23 + 1, 23 + 22, 46 + 5}, at::kLong);
  batch.fields["labels"] = at::tensor(std::vector<int64_t>{1500, 2, 29000, 777, 1500}, at::kLong);
  expect_gradients_agree<nn::BertMaskedLm>(masked, batch);
  batch.fields["starts"] = at::tensor(std::vector<int64_t>{0, 12, 5}, at::kLong);
  batch.fields["ends"] = at::tensor(std::vector<int64_t>{0, 20, 5}, at::kLong);
  expect_gradients_agree<nn::BertQuestionAnswering>(asked, batch);
}

template <typename Head>
void expect_saved_alike(const std::filesystem::path& folder) {
  const TempDir saved;
  nn::save_bert(saved.path(), *nn::load_bert<Head>(folder, {}).model);
  const auto config = [](const std::filesystem::path& at) {
    return Json::parse(read_text(at / "config.json"));
  };
  EXPECT_EQ(config(saved.path())["architectures"], config(folder)["architectures"]);
  const tensor::SafetensorsFile ours(saved / "model.safetensors"), theirs(folder / "model.safetensors");
  std::set<std::string> our_names, their_names;
  for (const auto& each : ours.tensors()) our_names.insert(each.first);
  for (const auto& each : theirs.tensors()) their_names.insert(each.first);
  EXPECT_EQ(our_names, their_names);
  for (const std::string& name : their_names)
    EXPECT_TRUE(at::equal(ours.read(name), theirs.read(name))) << name;
}

TEST_F(HeadsOracle, SavedFoldersHaveHuggingFacesNames) {
  SYNCOPATE_NEED_SHARED(masked, "oracles/mlm");
  SYNCOPATE_NEED_SHARED(asked, "oracles/qa");
  expect_saved_alike<nn::BertMaskedLm>(masked);
  expect_saved_alike<nn::BertQuestionAnswering>(asked);
  // A folder loaded for another task is saved as that task's.
  const TempDir saved;
  nn::save_bert(saved.path(), *nn::load_bert<nn::BertQuestionAnswering>(masked, {}).model);
  EXPECT_EQ(Json::parse(read_text(saved / "config.json"))["architectures"][0], "BertForQuestionAnswering");
}

}  // namespace
}  // namespace syncopate::test
