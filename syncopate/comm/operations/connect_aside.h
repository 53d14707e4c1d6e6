#pragma once

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/group.h"
#include "syncopate/comm/operations/waits.h"

namespace syncopate::comm {

/// What c10d calls an operation, in its own ReduceOp: its headers stay out of ours.
template <typename ReduceOp>
auto reduce_op(Op op) {
  return op == Op::kMax ? ReduceOp::MAX : op == Op::kMin ? ReduceOp::MIN : ReduceOp::SUM;
}

/// Connects one of c10d's backends. Its own connecting cannot be interrupted, so `make` gets a thread of its
/// own, left behind when the run fails meanwhile. Throws CommError; where c10d failed by itself, `trouble`
/// and its reason.
template <typename Make>
auto connect_aside(const std::shared_ptr<Waits>& waits, const std::string& trouble, Make make) {
  using Backend = decltype(make());
  auto task = std::make_shared<std::packaged_task<Backend()>>(std::move(make));
  std::future<Backend> made = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  waits->wait("connecting", [&](std::chrono::milliseconds slice) {
    return made.wait_for(std::min(slice, std::chrono::milliseconds(100))) == std::future_status::ready;
  });
  try {
    return made.get();
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    waits->lifeline()->check();
    throw CommError("{}: {}", trouble, first_line(error.what()));
  }
}

}  // namespace syncopate::comm
