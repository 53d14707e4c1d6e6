#include "syncopate/data/token_stream.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

namespace syncopate::data {
namespace {

constexpr size_t kWorthAThread = size_t{1} << 18;  // bytes of text
constexpr size_t kMostThreads = 16;

/// Where to cut the documents so that parts have about as many bytes each: parts + 1 bounds.
std::vector<size_t> even_parts(std::span<const std::string> documents, size_t bytes, size_t parts) {
  std::vector<size_t> bounds{0};
  size_t seen = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    seen += documents[i].size();
    if (bounds.size() < parts && seen >= bytes / parts * bounds.size()) bounds.push_back(i + 1);
  }
  bounds.resize(parts + 1, documents.size());
  bounds.back() = documents.size();
  return bounds;
}

}  // namespace

std::vector<int32_t> token_stream(std::span<const std::string> documents, const MakeAppend& make_append) {
  size_t bytes = 0;
  for (const std::string& document : documents) bytes += document.size();
  const size_t processors = std::max(1U, std::thread::hardware_concurrency());
  const size_t parts = std::min({processors, kMostThreads, bytes / kWorthAThread + 1});
  const std::vector<size_t> bounds = even_parts(documents, bytes, parts);
  std::vector<std::vector<int32_t>> streams(parts);
  std::vector<std::exception_ptr> failures(parts);
  const auto work = [&](size_t part) {
    try {
      const AppendDocument append = make_append();
      for (size_t i = bounds[part]; i < bounds[part + 1]; ++i) append(documents[i], streams[part]);
    } catch (...) {
      failures[part] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;  // joined at the end of the scope, whatever happens
    for (size_t part = 1; part < parts; ++part) threads.emplace_back(work, part);
    work(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  std::vector<int32_t> whole = std::move(streams[0]);
  for (size_t part = 1; part < parts; ++part) {
    whole.insert(whole.end(), streams[part].begin(), streams[part].end());
    streams[part] = {};
  }
  whole.shrink_to_fit();
  return whole;
}

}  // namespace syncopate::data
