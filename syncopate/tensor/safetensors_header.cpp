#include "syncopate/tensor/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/tensor/safetensors_types.h"

namespace syncopate::tensor {
namespace {

using nlohmann::json;

// What the reference implementation allows; a longer header is a lie or not a model.
constexpr uint64_t kLongestHeader = 100'000'000;
// A header needs three levels; the parser recurses, so that a file of brackets must not reach it.
constexpr int kDeepest = 8;
constexpr size_t kMostSides = 32;

[[noreturn]] void reject(const std::string& path, const std::string& what) {
  throw DataError("{} is not a sound safetensors file: {}; fetch or save it again", path, what);
}

/// A value of the file on one line, cut where it is absurdly long.
std::string on_one_line(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= 200 ? text : text.substr(0, 200) + "...";
}

[[noreturn]] void reject_tensor(const std::string& path, const std::string& name, const std::string& what) {
  reject(path, fmt::format("tensor {} {}", on_one_line(name), what));
}

/// Watches the parser for what a finished object no longer shows: a name given twice, or a bomb of brackets.
class Watch {
 public:
  explicit Watch(const std::string& path) : path_(path) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest) reject(path_, "its header is nested too deeply");
    if (event == json::parse_event_t::object_start) {
      seen_.resize(static_cast<size_t>(depth) + 1);
      seen_.back().clear();
    } else if (event == json::parse_event_t::key) {
      std::string key = parsed.get<std::string>();
      if (!seen_[static_cast<size_t>(depth) - 1].insert(key).second) {
        reject(path_, fmt::format("{} is in its header twice", on_one_line(key)));
      }
    }
    return true;
  }

 private:
  const std::string& path_;
  std::vector<std::set<std::string>> seen_;
};

json parse_object(std::string_view text, const std::string& path) {
  json header;
  try {
    header = json::parse(text.begin(), text.end(), Watch(path));
  } catch (const json::exception&) {
    reject(path, "its header is not JSON");
  }
  if (!header.is_object()) reject(path, "its header is not a JSON object");
  return header;
}

/// A whole number from 0 up to 2^63-1.
std::optional<int64_t> count_in(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  const int64_t number = value.get<int64_t>();
  if (number < 0) return std::nullopt;
  return number;
}

SafetensorsFile::Info parse_tensor(const json& entry, size_t data_size, const std::string& name,
                                   const std::string& path) {
  const auto field = [&](const char* key) -> const json& {
    if (!entry.is_object() || !entry.contains(key))
      reject_tensor(path, name, fmt::format("has no \"{}\"", key));
    return entry[key];
  };
  SafetensorsFile::Info info;
  const json& type = field("dtype");
  const auto known = type.is_string() ? type_of_name(type.get<std::string>()) : std::nullopt;
  if (!known) {
    reject_tensor(path, name,
                  fmt::format("has the type {}, which is none of F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL",
                              on_one_line(type)));
  }
  info.type = *known;

  const json& shape = field("shape");
  const json& offsets = field("data_offsets");
  if (!shape.is_array()) reject_tensor(path, name, "has a shape that is not a list");
  if (!offsets.is_array() || offsets.size() != 2) reject_tensor(path, name, "has no two data offsets");
  int64_t elements = 1, span = 1;
  for (const json& side : shape) {
    const auto length = count_in(side);
    // Strides multiply the other sides even where one is zero: those must fit a number too.
    if (!length || shape.size() > kMostSides ||
        __builtin_mul_overflow(span, std::max<int64_t>(*length, 1), &span) ||
        span > std::numeric_limits<int64_t>::max() / 16) {
      reject_tensor(path, name, "has an impossible shape");
    }
    elements *= *length;
    info.shape.push_back(*length);
  }
  const auto begin = count_in(offsets[0]), end = count_in(offsets[1]);
  if (!begin || !end || *begin > *end || static_cast<uint64_t>(*end) > data_size) {
    reject_tensor(path, name, fmt::format("lies outside the file's {} bytes of data", data_size));
  }
  info.begin = static_cast<size_t>(*begin);
  info.end = static_cast<size_t>(*end);
  if (static_cast<size_t>(elements) * c10::elementSize(info.type) != info.end - info.begin) {
    reject_tensor(path, name, fmt::format("has {} bytes, which do not fit its shape", info.end - info.begin));
  }
  return info;
}

/// Every byte of data belongs to one tensor, as the reference demands: no overlap, no hole, nothing left
/// over.
void check_cover(const SafetensorsHeader& header, size_t data_size, const std::string& path) {
  std::vector<std::pair<const std::string*, const SafetensorsFile::Info*>> order;
  for (const auto& [name, info] : header.tensors) order.emplace_back(&name, &info);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
  });
  size_t next = 0;
  for (const auto& [name, info] : order) {
    if (info->begin < next) reject_tensor(path, *name, "overlaps another");
    if (info->begin > next)
      reject_tensor(path, *name, fmt::format("leaves a hole of {} bytes before it", info->begin - next));
    next = info->end;
  }
  if (next != data_size) {
    reject(path,
           fmt::format("its tensors take {} bytes but {} bytes of data follow the header", next, data_size));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view bytes, const std::string& path) {
  if (bytes.size() < 8) reject(path, fmt::format("it has only {} bytes", bytes.size()));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
  if (length > bytes.size() - 8) {
    reject(path, fmt::format("its header claims {} bytes but {} follow", length, bytes.size() - 8));
  }
  if (length > kLongestHeader) reject(path, fmt::format("its header claims {} bytes", length));
  const size_t data_start = 8 + static_cast<size_t>(length);
  const size_t data_size = bytes.size() - data_start;
  const json parsed = parse_object(bytes.substr(8, length), path);

  SafetensorsHeader header;
  header.size = data_start;
  for (const auto& [name, entry] : parsed.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) reject(path, "its metadata is not a JSON object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) reject(path, "its metadata is not text");
        header.metadata[key] = value.get<std::string>();
      }
    } else {
      header.tensors[name] = parse_tensor(entry, data_size, name, path);
    }
  }
  check_cover(header, data_size, path);
  for (auto& [name, info] : header.tensors) {
    info.begin += data_start;
    info.end += data_start;
  }
  return header;
}

std::string safetensors_header(const std::vector<NamedTensor>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto type = name_of_type(tensor.scalar_type());
    check(type.has_value(), "a tensor's type has no name in safetensors");
    check(!header.contains(name), "two tensors of one name for one file");
    const size_t size = tensor.nbytes();
    header[name] = {
        {"dtype", *type}, {"shape", tensor.sizes().vec()}, {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return length + text;
}

}  // namespace syncopate::tensor
