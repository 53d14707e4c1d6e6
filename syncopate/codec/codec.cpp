#include "syncopate/codec/codec.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/codec/block_codec.h"
#include "syncopate/codec/random_k.h"
#include "syncopate/codec/top_k.h"

namespace syncopate::codec {

const std::vector<std::string>& element_codec_names() {
  static const std::vector<std::string> names{"none", "fp16", "bf16",  "int8",
                                              "int4", "sign", "top-k", "random-k"};
  return names;
}

int64_t kept_of(int64_t count, double ratio) {
  return std::clamp<int64_t>(std::llround(ratio * static_cast<double>(count)), std::min<int64_t>(count, 1),
                             count);
}

std::unique_ptr<Codec> make_codec(const CodecOptions& options) {
  using kernels::Kernels;
  const std::string& name = options.name;
  if (!(options.ratio > 0 && options.ratio <= 1)) {
    throw ConfigError("ratio must be above 0 and at most 1, got {}", options.ratio);
  }
  if (name == "none") return std::make_unique<BlockCodec>(name, &Kernels::fp32);
  if (name == "fp16") return std::make_unique<BlockCodec>(name, &Kernels::fp16);
  if (name == "bf16") return std::make_unique<BlockCodec>(name, &Kernels::bf16);
  if (name == "int8") return std::make_unique<BlockCodec>(name, &Kernels::int8);
  if (name == "int4") return std::make_unique<BlockCodec>(name, &Kernels::int4);
  if (name == "sign") return std::make_unique<BlockCodec>(name, &Kernels::sign);
  if (name == "top-k") return std::make_unique<TopK>(options.ratio);
  if (name == "random-k") return std::make_unique<RandomK>(options.ratio);
  throw ConfigError("unknown codec \"{}\"{}", name, suggestion(name, element_codec_names()));
}

}  // namespace syncopate::codec
