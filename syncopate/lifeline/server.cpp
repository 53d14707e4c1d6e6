#include "syncopate/lifeline/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/lifeline/key_values.h"
#include "syncopate/lifeline/meetings.h"
#include "syncopate/lifeline/proof.h"
#include "syncopate/lifeline/protocol.h"
#include "syncopate/lifeline/roster.h"
#include "syncopate/lifeline/wire.h"

namespace syncopate::lifeline {
namespace {

using Clock = std::chrono::steady_clock;

struct Peer {
  explicit Peer(Socket socket) : channel(std::move(socket)) {}
  Channel channel;
  int rank = -1;                     ///< until it is welcome
  std::optional<Introduction> told;  ///< its hello
};

}  // namespace

/// The thread and what it serves. `mutex_` guards everything but the descriptors polled.
class LifelineServer::Loop {
 public:
  explicit Loop(const LifelineServerOptions& options)
      : options_(options),
        listener_(listen_at({options.host, options.port})),
        address_{options.host, local_address(listener_).port},
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        claims_(options.claims),
        meetings_(options.size),
        beat_(beat_interval(options.timeout)),
        roster_(options.size, options.timeout, Clock::now()),
        thread_([this] { run(); }) {}

  ~Loop() { stop(false); }

  void stop(bool orderly) {
    {
      const std::lock_guard lock(mutex_);
      if (!thread_.joinable()) return;
      stopping_ = true;
      if (orderly) tell_all(Packer(FrameKind::kClosing));
    }
    wake();
    thread_.join();
    peers_.clear();
    listener_.close();
  }

  void declare(const Failure& failure) {
    const std::lock_guard lock(mutex_);
    announce(failure);
    wake();
  }

  int port() const { return address_.port; }

  template <typename Read>
  auto look(Read read) const {
    const std::lock_guard lock(mutex_);
    return read(roster_, failure_);
  }

 private:
  void wake() {
    const uint64_t one = 1;
    (void)!::write(wake_.fd(), &one, sizeof one);
  }

  void run() {
    Clock::time_point last = Clock::now(), next_beat = last;
    while (true) {
      std::vector<pollfd> watched{{listener_.fd(), POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        for (const Peer& peer : peers_) {
          const short events = peer.channel.unsent() ? POLLIN | POLLOUT : POLLIN;
          watched.push_back({peer.channel.fd(), events, 0});
        }
      }
      ::poll(watched.data(), watched.size(), static_cast<int>(beat_.count()));
      const std::lock_guard lock(mutex_);
      const Clock::time_point now = Clock::now();
      if (now - last > standstill(beat_)) roster_.excuse(now - last);
      last = now;
      uint64_t ignored = 0;
      (void)!::read(wake_.fd(), &ignored, sizeof ignored);
      for (Peer& peer : peers_) serve(peer, now);
      peers_.remove_if([](const Peer& peer) { return !peer.channel.open(); });
      while (auto socket = accept_from(listener_)) peers_.emplace_back(std::move(*socket));
      if (now >= next_beat) {
        next_beat = now + beat_;
        tell_all(Packer(FrameKind::kBeat));
        name_the_silent(now);
        if (const auto overdue = roster_.overdue(now)) announce(*overdue);
      }
    }
  }

  void name_the_silent(Clock::time_point now) {
    if (!options_.on_silence || failure_) return;
    for (const int rank : roster_.newly_silent(now))
      options_.on_silence(fell_silent(rank, roster_.status_of(rank), options_.timeout));
  }

  void serve(Peer& peer, Clock::time_point now) {
    peer.channel.flush();
    const bool alive = peer.channel.fill();
    try {
      while (const auto frame = peer.channel.next()) {
        Unpacker fields(*frame);
        if (!peer.told) {
          challenge(peer, fields);
        } else if (peer.rank < 0) {
          admit(peer, fields, now);
        } else {
          handle(peer, fields, now);
        }
        if (!peer.channel.open()) return;
      }
    } catch (const CommError&) {  // a stranger, or a broken worker: hang up
      lose(peer);
      return;
    }
    if (!alive) lose(peer);
  }

  void lose(Peer& peer) {
    peer.channel.close();
    if (peer.rank >= 0 && !roster_.has_left(peer.rank))
      announce(died(peer.rank, roster_.status_of(peer.rank)));
  }

  void challenge(Peer& peer, Unpacker& hello) {
    const bool ours = hello.kind() == FrameKind::kHello && hello.number() == kMagic;
    if (!ours) throw CommError("a stranger");
    Introduction told;
    told.of_worker = hello.text();
    told.rank = hello.number();
    told.size = hello.number();
    told.of_server = random_key();
    peer.channel.send(Packer(FrameKind::kChallenge).text(told.of_server));
    peer.told = std::move(told);
  }

  void admit(Peer& peer, Unpacker& answer, Clock::time_point now) {
    if (answer.kind() != FrameKind::kProof) throw CommError("a stranger");
    const Introduction& told = *peer.told;
    if (!proves(answer.text(), told.worker_proof(options_.key))) {
      return refuse(
          peer, true,
          {fmt::format("the rendezvous {} belongs to another run, or has another token", address_.text()),
           "give all workers the same (SYNCOPATE_TOKEN, --token-file)"});
    }
    const Claims claims = unpack_claims(answer);
    if (const auto refusal = objection(told, claims)) {
      return refuse(peer, false, *refusal);
    }
    if (claims_.empty()) claims_ = claims;
    peer.rank = static_cast<int>(told.rank);
    roster_.joined(peer.rank, now);
    refusals_.erase(told.rank);
    peer.channel.send(
        Packer(FrameKind::kWelcome).text(told.server_proof(options_.key)).number(options_.host_rank));
    if (failure_) peer.channel.send(pack(*failure_));
    if (options_.host_rank >= 0)
      peer.channel.send(pack(options_.host_rank, roster_.status_of(options_.host_rank)));
    if (roster_.all_joined()) this->answer(keys_.set(kAllJoined, "yes"), "yes");
  }

  struct Refusal {
    std::string reason, advice;
  };

  /// Why this worker cannot be one of the run, if it cannot.
  std::optional<Refusal> objection(const Introduction& told, const Claims& claims) const {
    if (told.size != options_.size) {
      return Refusal{fmt::format("rank {} expects {} workers but the run at {} has {}", told.rank, told.size,
                                 address_.text(), options_.size),
                     "start all workers with the same world size"};
    }
    if (told.rank < 0 || told.rank >= options_.size || roster_.is_joined(static_cast<int>(told.rank))) {
      return Refusal{fmt::format("rank {} is already taken at {}", told.rank, address_.text()),
                     fmt::format("give each worker its own rank below {}", options_.size)};
    }
    const std::string differs = difference(claims, claims_, static_cast<int>(told.rank));
    if (differs.empty()) return std::nullopt;
    return Refusal{fmt::format("{} at {}", differs, address_.text()),
                   "start all workers of a run with the same settings, or another run at another address"};
  }

  /// Its place stays free: the run goes on waiting for its own.
  void refuse(Peer& peer, bool for_its_key, const Refusal& refusal) {
    const std::string heard = for_its_key ? "it did not know the token" : refusal.reason;
    std::string& last = refusals_[peer.told->rank];
    if (options_.on_refusal && heard != last && !roster_.all_joined())
      options_.on_refusal(fmt::format("turned a worker away: {}; still waiting for the right one", heard));
    last = heard;
    peer.channel.send(Packer(FrameKind::kRefused)
                          .number(for_its_key ? 1 : 0)
                          .text(fmt::format("{}; {}", refusal.reason, refusal.advice)));
    peer.channel.close();
  }

  void handle(Peer& peer, Unpacker& fields, Clock::time_point now) {
    const int rank = peer.rank;
    switch (fields.kind()) {
      case FrameKind::kBeat:
        return roster_.beat(rank, fields.number() != 0, now);
      case FrameKind::kStatus: {
        fields.number();
        Status status;
        status.step = fields.number();
        status.phase = fields.text();
        if (rank == options_.host_rank) tell_all(pack(rank, status));
        return roster_.status(rank, std::move(status), now);
      }
      case FrameKind::kGoodbye:
        return roster_.left(rank);
      case FrameKind::kWish:
        if (meetings_.wish(fields.number())) tell_all(Packer(FrameKind::kWhere));
        return;
      case FrameKind::kHere:
        if (const auto meeting = meetings_.here(rank, fields.number()))
          tell_all(Packer(FrameKind::kMeet).number(meeting->step).number(meeting->wishes));
        return;
      case FrameKind::kMet:
        if (meetings_.met(rank)) tell_all(Packer(FrameKind::kWhere));
        return;
      default:
        return request(peer, fields, now);
    }
  }

  void request(Peer& peer, Unpacker& fields, Clock::time_point now) {
    const int64_t id = fields.number();
    const auto reply = [&](int64_t number, std::string_view value = "") {
      peer.channel.send(Packer(FrameKind::kReply).number(id).number(number).text(value));
    };
    switch (fields.kind()) {
      case FrameKind::kFail: {
        const int code = static_cast<int>(fields.number());
        announce(reported(peer.rank, roster_.status_of(peer.rank), code, fields.text()));
        return reply(0);
      }
      case FrameKind::kBlame: {
        const std::string operation = fields.text();
        const double seconds = static_cast<double>(fields.number()) / 1000;
        if (failure_) return reply(0);
        Failure failure = roster_.culprit(peer.rank, operation, seconds, address_.text(), now);
        if (!roster_.all_joined() && !refusals_.empty()) {  // that may be why one is missing
          const auto its_own = refusals_.find(failure.rank);
          failure.sentence += fmt::format(" One that came was turned away: {}",
                                          (its_own != refusals_.end() ? its_own : refusals_.begin())->second);
          failure.exit_code = static_cast<int>(ExitCode::kConfig);
        }
        announce(failure);
        return reply(0);
      }
      case FrameKind::kSet: {
        const std::string key = fields.text(), value = fields.text();
        answer(keys_.set(key, value), value);
        return reply(0);
      }
      case FrameKind::kGet:
        if (const std::string* value = keys_.get(fields.text(), {peer.rank, id})) reply(0, *value);
        return;
      case FrameKind::kAdd: {
        const std::string key = fields.text();
        const auto [sum, readers] = keys_.add(key, fields.number());
        answer(readers, std::to_string(sum));
        return reply(sum);
      }
      case FrameKind::kCheck: {
        bool all = true;
        for (int64_t left = fields.number(); left > 0; --left) all = keys_.has(fields.text()) && all;
        return reply(all ? 1 : 0);
      }
      case FrameKind::kErase:
        return reply(keys_.erase(fields.text()) ? 1 : 0);
      case FrameKind::kCount:
        return reply(keys_.count());
      default:
        throw CommError("not a request");
    }
  }

  void answer(const KeyValues::Answers& readers, const std::string& value) {
    for (const KeyValues::Reader& reader : readers) {
      for (Peer& peer : peers_) {
        if (peer.rank != reader.rank) continue;
        peer.channel.send(Packer(FrameKind::kReply).number(reader.id).number(0).text(value));
      }
    }
  }

  void announce(const Failure& failure) {
    if (failure_) return;
    failure_ = failure;
    tell_all(pack(failure));
  }

  void tell_all(const Packer& frame) {
    for (Peer& peer : peers_) {
      if (peer.rank >= 0) peer.channel.send(frame);
    }
  }

  const LifelineServerOptions options_;
  Socket listener_;
  const Address address_;
  const Socket wake_;
  Claims claims_;  ///< of the run
  Meetings meetings_;
  const std::chrono::milliseconds beat_;
  mutable std::mutex mutex_;
  Roster roster_;
  KeyValues keys_;
  std::optional<Failure> failure_;
  std::map<int64_t, std::string> refusals_;  ///< by rank; of those whose place is still free
  std::list<Peer> peers_;
  bool stopping_ = false;
  std::thread thread_;
};

LifelineServer::LifelineServer(const LifelineServerOptions& options)
    : loop_(std::make_unique<Loop>(options)) {}
LifelineServer::~LifelineServer() = default;

int LifelineServer::port() const { return loop_->port(); }
void LifelineServer::declare(const Failure& failure) { loop_->declare(failure); }
void LifelineServer::close() { loop_->stop(true); }

std::optional<Failure> LifelineServer::failure() const {
  return loop_->look([](const Roster&, const std::optional<Failure>& failure) { return failure; });
}

Status LifelineServer::status_of(int rank) const {
  return loop_->look([rank](const Roster& roster, const auto&) { return roster.status_of(rank); });
}

bool LifelineServer::joined(int rank) const {
  return loop_->look([rank](const Roster& roster, const auto&) { return roster.is_joined(rank); });
}

bool LifelineServer::left(int rank) const {
  return loop_->look([rank](const Roster& roster, const auto&) { return roster.has_left(rank); });
}

}  // namespace syncopate::lifeline
