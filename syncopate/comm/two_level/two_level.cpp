#include "syncopate/comm/two_level/two_level.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "syncopate/base/error.h"
#include "syncopate/comm/gloo/gloo.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/comm/operations/job_queue.h"
#include "syncopate/comm/operations/own.h"
#include "syncopate/comm/operations/queued.h"
#include "syncopate/comm/operations/reduce_type.h"
#include "syncopate/comm/shm/shm.h"
#include "syncopate/comm/together/hosts.h"
#include "syncopate/comm/together/members.h"

namespace syncopate::comm {
namespace {

using std::chrono::milliseconds;

constexpr int kLeader = 0;  ///< its place among the ranks of its host
/// Of a large tensor, so that one piece can be on the link while the next is summed. Not less: each pays for
/// the link's latency.
constexpr int64_t kPiece = 8 << 20;

int size_of(const TwoLevelPlace& place) { return static_cast<int>(place.hosts.size()); }

/// What a group's operations share: they may outlive it.
struct Levels {
  Levels(std::shared_ptr<Waits> waits_of_group, const TwoLevelPlace& place)
      : waits(std::move(waits_of_group)),
        inner(std::make_shared<Waits>(waits->lifeline(), waits->timeout())),
        hosts(place.hosts),
        rank(place.rank) {}

  int host() const { return hosts.of(rank); }
  bool leads() const { return hosts.place(rank) == kLeader; }
  bool is(int other) const { return rank == other; }

  std::shared_ptr<Waits> waits;  ///< of who calls the group
  std::shared_ptr<Waits> inner;  ///< of the levels: no deadline once they stand
  Hosts hosts;
  int rank;
  std::unique_ptr<Group> up, down;  ///< the ranks of this host, for either thread
  std::unique_ptr<Group> between;   ///< the leaders, from the thread that goes up; null elsewhere
};

/// Throws ConfigError on every rank where one of them has a reason to.
void require_all(Waits& waits, const TwoLevelPlace& place, const std::string& reason) {
  constexpr int64_t kFailed = 1 << 20;
  const auto key = [&](const char* what) { return place.prefix + "/" + what; };
  lifeline::Lifeline& line = *waits.lifeline();
  const lifeline::Lifeline::Waiting waiting(line);
  if (!reason.empty()) line.set(key("reason"), reason);
  const int64_t count = line.add(key("share"), reason.empty() ? 1 : kFailed + 1);
  if (count % kFailed == size_of(place)) line.set(key("all-share"), count < kFailed ? "yes" : "no");
  if (line.get(key("all-share"), waits.timeout()) == "no")
    throw ConfigError("{}", line.get(key("reason"), waits.timeout()));
}

void open_memory(Levels& levels, const TwoLevelPlace& place) {
  const int host = levels.host(), ranks = levels.hosts.ranks_on(host);
  const auto open = [&](const char* what) {
    if (ranks == 1) return open_alone();
    return open_shm(levels.inner, {fmt::format("{}/{}/{}", place.prefix, host, what),
                                   levels.hosts.place(place.rank), ranks});
  };
  std::string reason;
  try {
    levels.up = open("up");
    levels.down = open("down");
  } catch (const ConfigError& error) {
    reason = error.what();
  }
  require_all(*levels.inner, place, reason);
}

std::shared_ptr<Levels> open_levels(std::shared_ptr<Waits> waits, const TwoLevelPlace& place) {
  auto levels = std::make_shared<Levels>(std::move(waits), place);
  open_memory(*levels, place);
  if (levels->leads())
    levels->between = open_gloo(
        levels->inner, {place.prefix + "/leaders", place.address, levels->host(), levels->hosts.count()});
  levels->inner->set_timeout(kNoDeadline);
  return levels;
}

/// One operation's tensors and its transfer between hosts, handed from the way up to the way down.
struct Flight {
  at::Tensor wide{};              ///< in the type in which it is summed
  at::Tensor all{};               ///< what each rank gives or gets; a leader's, and a root's
  std::vector<Pending> across{};  ///< a leader's

  void cross() {
    for (Pending& each : across) each.wait();
  }
};

class TwoLevelGroup : public Group {
 public:
  TwoLevelGroup(std::shared_ptr<Waits> waits, TwoLevelPlace place)
      : place_(std::move(place)),
        levels_(open_levels(std::move(waits), place_)),
        post_(open_gloo(levels_->waits, {place_.prefix + "/post", place_.address, place_.rank, size()})) {}

  ~TwoLevelGroup() override {
    if (!up_lane_->idle() || !down_lane_->idle())
      levels_->inner->die("the group was destroyed while it was used");
  }

  int rank() const override { return place_.rank; }
  int size() const override { return size_of(place_); }

  Pending all_reduce(at::Tensor tensor, Op op) override {
    return in_pieces(own(tensor), [&](at::Tensor piece) { return reduce(std::move(piece), op); });
  }

  Pending broadcast(at::Tensor tensor, int root) override {
    return in_pieces(own(tensor), [&](at::Tensor piece) { return spread(std::move(piece), root); });
  }

  Pending gather(std::vector<at::Tensor> into, at::Tensor mine, int root) override;
  Pending scatter(at::Tensor into, std::vector<at::Tensor> from, int root) override;
  Pending all_gather(std::vector<at::Tensor> into, at::Tensor mine) override;

  Pending send(at::Tensor tensor, int to, int tag) override { return post_->send(tensor, to, tag); }
  Pending receive(at::Tensor into, int from, int tag) override { return post_->receive(into, from, tag); }

  void barrier() override {
    const auto up = [](Levels& levels) {
      levels.up->barrier();
      if (levels.between) levels.between->barrier();
    };
    start("barrier", up, [](Levels& levels) { levels.down->barrier(); }).wait();
  }

  std::unique_ptr<Group> split(int color, int key) override {
    const std::vector<int> ranks = members(*this, color, key);
    TwoLevelPlace place{.prefix = fmt::format("{}/{}/{}", place_.prefix, splits_++, color),
                        .address = place_.address,
                        .rank = place_among(ranks, rank()),
                        .hosts = {}};
    for (const int member : ranks) place.hosts.push_back(place_.hosts[static_cast<size_t>(member)]);
    const Waits& mine = *levels_->waits;
    return open_by_hosts(std::make_shared<Waits>(mine.lifeline(), mine.timeout()), std::move(place));
  }

  at::Tensor room(int64_t count, at::ScalarType type) override {
    const auto made = std::make_shared<at::Tensor>();
    const auto up = [made, count, type](Levels& levels) { *made = levels.up->room(count, type); };
    start("room", up, [](Levels&) {}).wait();
    return *made;
  }

  void set_timeout(milliseconds timeout) override { levels_->waits->set_timeout(timeout); }

 private:
  using Way = std::function<void(Levels&)>;

  Pending nothing() const {
    levels_->waits->check();
    return {};
  }

  /// The last piece's: they come to their ends one after the other.
  template <typename Each>
  Pending in_pieces(const at::Tensor& tensor, const Each& each) {
    Pending last = nothing();
    const at::Tensor flat = tensor.view({tensor.numel()});
    const int64_t most = kPiece / static_cast<int64_t>(tensor.element_size());
    for (int64_t from = 0; from < flat.numel(); from += most)
      last = each(flat.narrow(0, from, std::min(most, flat.numel() - from)));
    return last;
  }

  /// Both ways of an operation, each behind those of the operations before it. All transfers between hosts
  /// are started on the way up, so that the leaders start them in one order.
  Pending start(const char* operation, Way up, Way down) {
    levels_->waits->check();
    const auto way_up = up_lane_->push(
        [levels = levels_, up = std::move(up)](bool) { levels->waits->dying([&] { up(*levels); }); });
    auto way_down =
        down_lane_->push([levels = levels_, lane = up_lane_, way_up, down = std::move(down)](bool) {
          levels->waits->dying([&] {
            while (!lane->wait(*way_up, milliseconds(250))) levels->inner->check();
            down(*levels);
          });
        });
    return queued(levels_->waits, down_lane_, operation, std::move(way_down));
  }

  Pending reduce(at::Tensor mine, Op op) {
    const auto flight = std::make_shared<Flight>();
    const auto up = [flight, mine, op](Levels& levels) {
      flight->wide = mine.to(reduced_as(mine.scalar_type()));  // itself where the type is the same
      levels.up->all_reduce(flight->wide, op).wait();
      if (levels.between) flight->across.push_back(levels.between->all_reduce(flight->wide, op));
    };
    const auto down = [flight, mine](Levels& levels) {
      flight->cross();
      if (levels.leads() && !mine.is_same(flight->wide)) mine.copy_(flight->wide);
      levels.down->broadcast(mine, kLeader).wait();
    };
    return start("all_reduce", up, down);
  }

  Pending spread(at::Tensor mine, int root) {
    const auto flight = std::make_shared<Flight>();
    const auto up = [flight, mine, root](Levels& levels) {
      const int home = levels.hosts.of(root);
      if (levels.host() == home) levels.up->broadcast(mine, levels.hosts.place(root)).wait();
      if (levels.between) flight->across.push_back(levels.between->broadcast(mine, home));
    };
    const auto down = [flight, mine, root](Levels& levels) {
      flight->cross();
      if (levels.host() != levels.hosts.of(root)) levels.down->broadcast(mine, kLeader).wait();
    };
    return start("broadcast", up, down);
  }

  TwoLevelPlace place_;
  std::shared_ptr<Levels> levels_;
  std::unique_ptr<Group> post_;  ///< messages, of all ranks
  std::shared_ptr<JobQueue> up_lane_ = std::make_shared<JobQueue>(false);
  std::shared_ptr<JobQueue> down_lane_ = std::make_shared<JobQueue>(false);
  int64_t splits_ = 0;
};

// --- Parts that are each rank's own: as bytes, in rows, those of a host next to each other
// -------------------

/// For all ranks' parts.
at::Tensor empty_rows(const Levels& levels, int64_t bytes) {
  return at::empty({levels.hosts.size(), bytes}, at::kByte);
}

/// A host's, of all.
at::Tensor rows_of(const Levels& levels, const at::Tensor& all, int host) {
  return all.narrow(0, levels.hosts.first_row(host), levels.hosts.ranks_on(host));
}

at::Tensor row_of(const Levels& levels, const at::Tensor& all, int rank) {
  return rows_of(levels, all, levels.hosts.of(rank))[levels.hosts.place(rank)];
}

/// A leader gets what its ranks give.
void collect(Levels& levels, Flight& flight, const at::Tensor& mine) {
  std::vector<at::Tensor> rows;
  if (levels.leads()) {
    flight.all = empty_rows(levels, mine.numel());
    rows = rows_of(levels, flight.all, levels.host()).unbind(0);
  }
  levels.up->gather(std::move(rows), mine, kLeader).wait();
}

// Between leaders, to and from one of them. They have parts of different sizes, so these are messages.
constexpr int kRows = 0;

void send_rows(Levels& levels, Flight& flight, int host, int to) {
  flight.across.push_back(levels.between->send(rows_of(levels, flight.all, host), to, kRows));
}

void receive_rows(Levels& levels, Flight& flight, int host) {
  flight.across.push_back(levels.between->receive(rows_of(levels, flight.all, host), host, kRows));
}

template <typename Each>
void for_other_hosts(const Levels& levels, const Each& each) {
  for (int host = 0; host < levels.hosts.count(); ++host) {
    if (host != levels.host()) each(host);
  }
}

/// From one rank of this host to another, by their places; nothing where they are the same.
void hand_over(const Levels& levels, Group& here, at::Tensor& all, int64_t bytes, int from, int to) {
  constexpr int kTag = 0;
  if (from == to) return;
  const int mine = levels.hosts.place(levels.rank);
  if (mine == from) here.send(all, to, kTag).wait();
  if (mine != to) return;
  all = empty_rows(levels, bytes);
  here.receive(all, from, kTag).wait();
}

void unpack(const Levels& levels, const at::Tensor& all, const std::vector<at::Tensor>& into) {
  for (size_t r = 0; r < into.size(); ++r) into[r].copy_(row_of(levels, all, static_cast<int>(r)));
}

Pending TwoLevelGroup::gather(std::vector<at::Tensor> into, at::Tensor mine, int root) {
  check(rank() != root || into.size() == static_cast<size_t>(size()),
        "gather needs one tensor per rank at its root");
  if (mine.numel() == 0) return nothing();
  const auto flight = std::make_shared<Flight>();
  const auto up = [flight, mine = as_bytes(mine), root](Levels& levels) {
    collect(levels, *flight, mine);
    if (!levels.between) return;
    const int home = levels.hosts.of(root);
    if (levels.host() != home) return send_rows(levels, *flight, levels.host(), home);
    for_other_hosts(levels, [&](int host) { receive_rows(levels, *flight, host); });
  };
  const auto down = [flight, into = as_bytes(into), bytes = static_cast<int64_t>(mine.nbytes()),
                     root](Levels& levels) {
    flight->cross();
    if (levels.host() != levels.hosts.of(root)) return;
    hand_over(levels, *levels.down, flight->all, bytes, kLeader, levels.hosts.place(root));
    if (levels.is(root)) unpack(levels, flight->all, into);
  };
  return start("gather", up, down);
}

Pending TwoLevelGroup::scatter(at::Tensor into, std::vector<at::Tensor> from, int root) {
  check(rank() != root || from.size() == static_cast<size_t>(size()),
        "scatter needs one tensor per rank at its root");
  if (into.numel() == 0) return nothing();
  const auto flight = std::make_shared<Flight>();
  const auto bytes = static_cast<int64_t>(into.nbytes());
  const auto up = [flight, from = as_bytes(from), bytes, root](Levels& levels) {
    const int home = levels.hosts.of(root);
    if (levels.leads() || levels.is(root)) flight->all = empty_rows(levels, bytes);
    for (size_t r = 0; r < from.size() && levels.is(root); ++r)
      row_of(levels, flight->all, static_cast<int>(r)).copy_(from[r]);
    if (levels.host() == home)
      hand_over(levels, *levels.up, flight->all, bytes, levels.hosts.place(root), kLeader);
    if (!levels.between) return;
    if (levels.host() != home) {
      flight->across.push_back(
          levels.between->receive(rows_of(levels, flight->all, levels.host()), home, kRows));
    } else {
      for_other_hosts(levels, [&](int host) { send_rows(levels, *flight, host, host); });
    }
  };
  const auto down = [flight, into = as_bytes(into)](Levels& levels) {
    flight->cross();
    std::vector<at::Tensor> rows;
    if (levels.leads()) rows = rows_of(levels, flight->all, levels.host()).unbind(0);
    levels.down->scatter(into, std::move(rows), kLeader).wait();
  };
  return start("scatter", up, down);
}

Pending TwoLevelGroup::all_gather(std::vector<at::Tensor> into, at::Tensor mine) {
  check(into.size() == static_cast<size_t>(size()), "all_gather needs one tensor per rank");
  if (mine.numel() == 0) return nothing();
  const auto flight = std::make_shared<Flight>();
  const auto up = [flight, mine = as_bytes(mine)](Levels& levels) {
    collect(levels, *flight, mine);
    if (!levels.between) return;
    for_other_hosts(levels, [&](int host) { receive_rows(levels, *flight, host); });
    for_other_hosts(levels, [&](int host) { send_rows(levels, *flight, levels.host(), host); });
  };
  const auto down = [flight, into = as_bytes(into),
                     bytes = static_cast<int64_t>(mine.nbytes())](Levels& levels) {
    flight->cross();
    if (!levels.leads()) flight->all = empty_rows(levels, bytes);
    levels.down->broadcast(flight->all, kLeader).wait();
    unpack(levels, flight->all, into);
  };
  return start("all_gather", up, down);
}

}  // namespace

std::unique_ptr<Group> open_two_level(std::shared_ptr<Waits> waits, TwoLevelPlace place) {
  return std::make_unique<TwoLevelGroup>(std::move(waits), std::move(place));
}

std::unique_ptr<Group> open_by_hosts(std::shared_ptr<Waits> waits, TwoLevelPlace place) {
  const int size = size_of(place);
  switch (Hosts(place.hosts).seating()) {
    case Seating::kAlone:
      return open_alone();
    case Seating::kOneHost:
      return open_shm(std::move(waits), {place.prefix, place.rank, size});
    case Seating::kOneEach:
      return open_gloo(std::move(waits), {place.prefix, place.address, place.rank, size});
    case Seating::kTwoLevels:
      break;
  }
  return open_two_level(std::move(waits), std::move(place));
}

}  // namespace syncopate::comm
