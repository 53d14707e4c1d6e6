#include "syncopate/train/checkpoint_parts.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/train/checkpoint.h"

namespace syncopate::train {
namespace {

using parallel::Scope;
using parallel::StateTensor;
using Json = nlohmann::ordered_json;

constexpr int kTag = 77;

/// As the file calls it; what one rank has alone needs no mean.
std::string name_in_file(const StateTensor& tensor, int owner, int ranks) {
  if (tensor.scope == Scope::kCommon || (tensor.scope == Scope::kMean && ranks == 1)) return tensor.name;
  return fmt::format("rank{}.{}", owner, tensor.name);
}

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
}

bool is_of_a_rank(const std::string& name) {
  const size_t digits = name.find_first_not_of("0123456789", 4);
  return name.starts_with("rank") && digits != std::string::npos && digits > 4 && name[digits] == '.';
}

/// What every rank has, as seen by all: names, shapes and types on the host, values not yet there.
/// Collective.
std::vector<std::vector<StateTensor>> described(comm::Group& group, const std::vector<StateTensor>& mine) {
  std::vector<std::vector<StateTensor>> all;
  for (int owner = 0; owner < group.size(); ++owner) {
    Json list = Json::array();
    if (group.rank() == owner) {
      for (const StateTensor& each : mine) {
        list.push_back({each.name, each.tensor.sizes().vec(), static_cast<int>(each.tensor.scalar_type()),
                        static_cast<int>(each.scope)});
      }
    }
    list = Json::parse(comm::broadcast_text(group, list.dump(), owner));
    all.emplace_back();
    for (const Json& each : list) {
      all.back().push_back({.name = each.at(0),
                            .tensor = at::empty(each.at(1).get<std::vector<int64_t>>(),
                                                static_cast<at::ScalarType>(each.at(2).get<int>())),
                            .scope = static_cast<Scope>(each.at(3).get<int>())});
    }
  }
  return all;
}

const StateTensor* find(const std::vector<StateTensor>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const StateTensor& each) { return each.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

/// Rank 0's `value` into the tensor of that name on every rank that has one, by `all`. Collective.
void spread_by_name(comm::Group& group, const std::vector<StateTensor>& mine,
                    const std::vector<std::vector<StateTensor>>& all, const std::string& name,
                    at::Tensor value) {
  const StateTensor* const own = find(mine, name);
  const bool by_all =
      std::all_of(all.begin(), all.end(), [&](const auto& theirs) { return find(theirs, name) != nullptr; });
  if (value.numel() > 0 && by_all && group.size() > 1) {
    if (group.rank() != 0) value = at::empty_like(value);
    group.broadcast(value, 0).wait();
  } else if (value.numel() > 0) {
    for (int owner = 1; owner < group.size(); ++owner) {
      if (find(all[static_cast<size_t>(owner)], name) == nullptr) continue;
      if (group.rank() == 0) group.send(value, owner, kTag).wait();
      if (group.rank() == owner) group.receive(value, 0, kTag).wait();
    }
  }
  if (own != nullptr) at::Tensor(own->tensor).detach().copy_(value);
}

/// One checkpoint on its way into the parts.
class Restoring {
 public:
  Restoring(comm::Group& group, std::vector<StateTensor> mine)
      : group_(group), mine_(std::move(mine)), wanted_(described(group, mine_)) {}

  /// Reads the file and sees that all of it has its place. Collective.
  Json read(const std::filesystem::path& path) {
    Checkpoint file;
    at_rank_zero(group_, [&] {
      file = load_checkpoint(path);
      for (const auto& [name, tensor] : file.tensors) saved_[name] = tensor;
      ranks_before_ = file.state.at("ranks");
      require_fit(path);
    });
    Json state = Json::parse(comm::broadcast_text(group_, file.state.dump(), 0));
    ranks_before_ = state.at("ranks");
    return state;
  }

  Resumption fill() {
    Resumption how{.ranks_before = ranks_before_, .ranks_now = group_.size(), .notes = {}};
    std::set<std::string> shared;
    for (const auto& theirs : wanted_) {
      for (const StateTensor& each : theirs) {
        const bool by_name = each.scope == Scope::kCommon || (each.scope == Scope::kMean && resized());
        if (by_name && shared.insert(each.name).second) share(each);
      }
    }
    for (const StateTensor& each : mine_) {
      if (how.resized() && !each.when_resized.empty()) how.note(each.when_resized);
    }
    if (how.resized()) return how;
    for (int owner = 0; owner < group_.size(); ++owner) hand_out(owner);
    return how;
  }

 private:
  bool resized() const { return ranks_before_ != group_.size(); }

  /// Rank 0: names and shapes are those of the file.
  void require_fit(const std::filesystem::path& path) const {
    std::set<std::string> placed;
    const auto require = [&](const StateTensor& each, const std::string& name) {
      const auto found = saved_.find(name);
      placed.insert(name);
      if (found != saved_.end() && found->second.sizes() == each.tensor.sizes() &&
          found->second.scalar_type() == each.tensor.scalar_type()) {
        return;
      }
      does_not_fit(path, found == saved_.end() ? fmt::format("{} is missing in it", name)
                                               : fmt::format("{} is {} in it and {} here", name,
                                                             shape_of(found->second), shape_of(each.tensor)));
    };
    for (const auto& theirs : wanted_) {
      for (const StateTensor& each : theirs) {
        if (each.scope == Scope::kCommon) require(each, each.name);
        if (each.scope != Scope::kMean || !resized()) continue;
        for (const std::string& name : holders_of(each)) require(each, name);
      }
    }
    for (int owner = 0; owner < group_.size() && !resized(); ++owner) {
      for (const StateTensor& each : wanted_[static_cast<size_t>(owner)])
        if (each.scope != Scope::kCommon) require(each, name_in_file(each, owner, ranks_before_));
    }
    for (const auto& [name, tensor] : saved_) {
      if (placed.contains(name) || (resized() && is_of_a_rank(name))) continue;
      does_not_fit(path, fmt::format("{} is in it and has no place here", name));
    }
  }

  [[noreturn]] static void does_not_fit(const std::filesystem::path& path, const std::string& why) {
    throw DataError(
        "the checkpoint {} does not fit this run: {}; resume with the model and optimizer it was made with",
        path.string(), why);
  }

  /// The names in the file of what each rank had of it: of a model in stages some had none. The first rank's
  /// where nobody had it, which is missing then.
  std::vector<std::string> holders_of(const StateTensor& each) const {
    std::vector<std::string> names;
    for (int rank = 0; rank < ranks_before_; ++rank) {
      const std::string name = name_in_file(each, rank, ranks_before_);
      if (saved_.contains(name)) names.push_back(name);
    }
    if (names.empty()) names.push_back(name_in_file(each, 0, ranks_before_));
    return names;
  }

  at::Tensor mean_of(const StateTensor& each) const {
    const std::vector<std::string> names = holders_of(each);
    at::Tensor sum = saved_.at(names.front()).to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
    for (size_t i = 1; i < names.size(); ++i) sum.add_(saved_.at(names[i]));
    return sum.div_(static_cast<double>(names.size()));
  }

  /// The same for all ranks that have it.
  void share(const StateTensor& each) {
    at::Tensor value = each.tensor;
    if (group_.rank() == 0)
      value = (each.scope == Scope::kMean ? mean_of(each).to(value.scalar_type()) : saved_.at(each.name))
                  .contiguous();
    spread_by_name(group_, mine_, wanted_, each.name, value);
  }

  void hand_out(int owner) {
    const auto& theirs = wanted_[static_cast<size_t>(owner)];
    for (size_t i = 0; i < theirs.size(); ++i) {
      if (theirs[i].scope == Scope::kCommon) continue;
      at::Tensor value = theirs[i].tensor;
      if (group_.rank() == 0) value = saved_.at(name_in_file(theirs[i], owner, ranks_before_)).contiguous();
      if (group_.rank() == 0 && owner != 0) group_.send(value, owner, kTag).wait();
      if (group_.rank() != owner) continue;
      if (owner != 0) group_.receive(value, 0, kTag).wait();
      at::Tensor(mine_[i].tensor).detach().copy_(value);
    }
  }

  comm::Group& group_;
  std::vector<StateTensor> mine_;
  std::vector<std::vector<StateTensor>> wanted_;  ///< by rank
  std::map<std::string, at::Tensor> saved_;       ///< rank 0 alone
  int ranks_before_ = 0;
};

}  // namespace

void Resumption::note(const std::string& text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
}

void save_checkpoint(const std::filesystem::path& path, comm::Group& group, CheckpointParts parts) {
  Checkpoint file;
  file.state = {{"ranks", group.size()}};
  std::vector<StateTensor> mine;
  for (CheckpointPart* part : parts) {
    parallel::append(mine, "", part->to_save());
    const Json values = part->values();
    if (!values.is_null()) file.state[part->name()] = values;
  }
  file.tensors = gather(group, mine);
  at_rank_zero(group, [&] { save_checkpoint(path, file); });
}

std::vector<tensor::NamedTensor> gather(comm::Group& group, const std::vector<StateTensor>& mine) {
  std::vector<tensor::NamedTensor> gathered;
  std::vector<comm::Pending> under_way;
  std::set<std::string> given;
  const auto all = described(group, mine);
  for (int owner = 0; owner < group.size(); ++owner) {
    const auto& theirs = all[static_cast<size_t>(owner)];
    for (size_t i = 0; i < theirs.size(); ++i) {
      if (theirs[i].scope == Scope::kCommon && !given.insert(theirs[i].name).second) continue;
      at::Tensor value = theirs[i].tensor;
      if (group.rank() == owner) value = mine[i].tensor.detach().to(at::kCPU).contiguous();
      // All at once: over a long link each would take a round trip of its own.
      if (group.rank() == owner && owner != 0) under_way.push_back(group.send(value, 0, kTag));
      if (group.rank() == 0 && owner != 0) under_way.push_back(group.receive(value, owner, kTag));
      if (group.rank() == 0) gathered.push_back({name_in_file(theirs[i], owner, group.size()), value});
    }
  }
  for (comm::Pending& each : under_way) each.wait();
  return gathered;
}

void spread(comm::Group& group, const std::vector<StateTensor>& mine,
            const std::map<std::string, at::Tensor>& values) {
  const auto all = described(group, mine);
  std::set<std::string> given;
  for (const auto& theirs : all) {
    for (const StateTensor& each : theirs) {
      if (!given.insert(each.name).second) continue;
      spread_by_name(group, mine, all, each.name,
                     group.rank() == 0 ? values.at(each.name).contiguous() : each.tensor);
    }
  }
}

void at_rank_zero(comm::Group& group, const std::function<void()>& work) {
  std::string failure;
  if (group.rank() == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }
  failure = comm::broadcast_text(group, failure, 0);
  if (failure.empty()) return;
  group.barrier();  // who throws may be gone at once: all have heard
  throw DataError("{}", failure);
}

std::string at_every_rank(comm::Group& group, const std::function<void()>& work) {
  std::string failure;
  try {
    work();
  } catch (const Error& error) {
    if (error.code() == ExitCode::kComm) throw;
    failure = error.what();
  }
  const at::Tensor first = at::full({1}, failure.empty() ? group.size() : group.rank(), at::kLong);
  group.all_reduce(first, comm::Op::kMin).wait();
  const auto failed = static_cast<int>(first.item<int64_t>());
  return failed == group.size() ? "" : comm::broadcast_text(group, failure, failed);
}

Resumption restore_checkpoint(const std::filesystem::path& path, comm::Group& group, CheckpointParts parts) {
  std::vector<StateTensor> mine;
  for (CheckpointPart* part : parts) parallel::append(mine, "", part->to_restore());
  Restoring restoring(group, std::move(mine));
  const Json state = restoring.read(path);
  const auto values_of = [&](const CheckpointPart& part) {
    const auto values = state.find(part.name());
    return values == state.end() ? Json() : *values;
  };
  for (CheckpointPart* part : parts) part->require(values_of(*part));
  Resumption how = restoring.fill();
  for (CheckpointPart* part : parts) part->restored(values_of(*part), how);
  return how;
}

}  // namespace syncopate::train
