#include "syncopate/tensor/safetensors.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "tests/support/support.h"

namespace syncopate::tensor {
namespace {

using test::TempDir;

std::string with_length(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  const uint64_t size = header.size();
  std::memcpy(length.data(), &size, 8);
  return length + header + data;
}

/// The sentence that opening `bytes` ends in; empty when the file is sound.
std::string fault_of(const std::string& bytes) {
  static const TempDir folder;
  test::write_text(folder / "m.safetensors", bytes);
  try {
    const SafetensorsFile file(folder / "m.safetensors");
    for (const auto& [name, info] : file.tensors()) file.read(name);
    return "";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("m.safetensors"), std::string::npos) << error.what();
    return error.what();
  }
}

std::string one(const std::string& fields) { return "{\"a\":{" + fields + "}}"; }

std::vector<NamedTensor> every_type() {
  std::vector<NamedTensor> tensors;
  const at::Tensor base = at::arange(12).view({3, 4});
  for (const auto type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                          at::kChar, at::kByte, at::kBool}) {
    tensors.push_back({std::string("t.") + c10::toString(type), base.to(type)});
  }
  tensors.push_back({"scalar", at::full({}, 2.5f)});
  tensors.push_back({"empty", at::zeros({0, 3})});
  tensors.push_back({"turned", at::arange(6, at::kFloat).view({2, 3}).t()});
  return tensors;
}

TEST(Safetensors, WritesAndReadsEveryType) {
  const TempDir folder;
  write_safetensors(folder / "m.safetensors", every_type(), {{"format", "pt"}, {"note", "a \"quoted\" ü"}});
  const SafetensorsFile file(folder / "m.safetensors");
  EXPECT_EQ(file.metadata().at("note"), "a \"quoted\" ü");
  EXPECT_EQ(file.tensors().size(), every_type().size());
  for (const auto& [name, tensor] : every_type()) {
    const at::Tensor read = file.read(name);
    EXPECT_EQ(read.scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::equal(read, tensor)) << name;
  }
  EXPECT_EQ(file.tensors().begin()->second.begin % 8, 0u);
  EXPECT_THROW(file.read("absent"), DataError);
}

TEST(Safetensors, ReadsFilesOfTheReferenceImplementation) {
  SYNCOPATE_NEED_SHARED(path, "oracles/tiny-bert-cls/model.safetensors");
  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.read("classifier.weight").sizes(), (std::vector<int64_t>{2, 32}));
}

TEST(Safetensors, AcceptsAFileWithoutTensors) { EXPECT_EQ(fault_of(with_length("{}", "")), ""); }

TEST(Safetensors, RejectsInconsistentHeaders) {
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  const std::string data(8, 'x');
  EXPECT_EQ(fault_of(with_length(one(good), data)), "");
  const auto rejects = [&](const std::string& bytes, const std::string& why) {
    const std::string fault = fault_of(bytes);
    EXPECT_NE(fault.find(why), std::string::npos) << "expected \"" << why << "\" in: " << fault;
  };
  const auto header = [&](const std::string& fields) { return with_length(one(fields), data); };
  rejects("", "only 0 bytes");
  rejects("1234567", "only 7 bytes");
  rejects(std::string(8, '\xff') + "{}", "claims");
  rejects(with_length(one(good), data).substr(0, 20), "claims");
  rejects(with_length("not json", data), "not JSON");
  rejects(with_length("[1]", data), "not a JSON object");
  rejects(with_length(std::string(100000, '['), ""), "nested");
  rejects(with_length("{\"a\":" + std::string(50, '['), ""), "nested");
  rejects(with_length(R"({"a":1})", data), "has no \"dtype\"");
  rejects(with_length("{\"a\":{" + good + "},\"a\":{" + good + "}}", data), "twice");
  rejects(with_length(R"({"__metadata__":{"x":1}})", ""), "metadata");
  rejects(with_length(R"({"__metadata__":[]})", ""), "metadata");
  rejects(header(R"("shape":[2],"data_offsets":[0,8])"), "dtype");
  rejects(header(R"("dtype":"F99","shape":[2],"data_offsets":[0,8])"), "F99");
  rejects(header(R"("dtype":7,"shape":[2],"data_offsets":[0,8])"), "none of");
  rejects(header(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), "shape");
  rejects(header(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "impossible shape");
  rejects(header(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), "impossible shape");
  rejects(header(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8])"),
          "impossible shape");
  rejects(header(R"("dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0])"),
          "impossible shape");
  rejects(header(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])"), "impossible shape");
  rejects(header(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), "do not fit its shape");
  rejects(header(R"("dtype":"F32","shape":[2],"data_offsets":[0,12])"), "outside");
  rejects(header(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "outside");
  rejects(header(R"("dtype":"F32","shape":[2],"data_offsets":[-8,0])"), "outside");
  rejects(header(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), "offsets");
  rejects(header(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "8 bytes of data follow");
  rejects(header(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), "hole");
  rejects(with_length(R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)"
                      R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                      data),
          "overlaps");
}

TEST(Safetensors, ErrorsNameTheTensorAndTheFile) {
  const std::string fault =
      fault_of(with_length(one(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), "12345678"));
  EXPECT_NE(fault.find("\"a\""), std::string::npos);
  const std::string odd =
      fault_of(with_length(R"({"a\nb":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678"));
  EXPECT_NE(odd.find(R"("a\nb")"), std::string::npos) << odd;
  EXPECT_EQ(odd.find('\n'), std::string::npos);
}

/// Any change to a file's header either leaves it sound or ends in a DataError; nothing reads outside the
/// file.
TEST(Safetensors, SurvivesTwoThousandMutations) {
  const TempDir folder;
  write_safetensors(folder / "good.safetensors", every_type(), {{"format", "pt"}});
  const std::string good = test::read_text(folder / "good.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, good.data(), 8);
  Rng rng(20260101);
  int sound = 0, rejected = 0;
  const std::string spice = "0123456789{}[]\",:-.eE \\u\xff";
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = good;
    const uint64_t changes = 1 + rng.below(4);
    for (uint64_t i = 0; i < changes; ++i) {
      const uint64_t at = rng.below(header + 8);
      switch (rng.below(6)) {
        case 0:
          bytes[at] = static_cast<char>(rng.below(256));
          break;
        case 1:
          bytes[at] = spice[rng.below(spice.size())];
          break;
        case 2:
          bytes.erase(at, 1 + rng.below(8));
          break;
        case 3:
          bytes.insert(at, 1 + rng.below(8), spice[rng.below(spice.size())]);
          break;
        case 4:
          bytes.resize(rng.below(bytes.size() + 1));
          break;
        default:
          bytes.insert(at, bytes.substr(rng.below(bytes.size()), rng.below(60)));
          break;
      }
      if (bytes.size() < header + 8) break;
    }
    (fault_of(bytes).empty() ? sound : rejected) += 1;
  }
  EXPECT_GT(rejected, 1000);
  EXPECT_EQ(sound + rejected, 2000);
}

}  // namespace
}  // namespace syncopate::tensor
