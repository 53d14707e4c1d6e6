#include "syncopate/comm/meeting.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"

namespace syncopate::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Where to go and what to show there.
struct Invitation {
  Address address;
  std::string key;
  std::string text() const { return address.text() + " " + key; }
};

std::optional<Invitation> parse_invitation(const std::string& text) {
  const std::vector<std::string_view> words = split(trim(text), ' ');
  if (words.size() != 2) return std::nullopt;
  const auto address = parse_address(words[0]);
  if (!address) return std::nullopt;
  return Invitation{*address, std::string(words[1])};
}

/// The folder must be ours alone: others could write their own port into it.
void make_private_folder(const std::filesystem::path& folder) {
  ::mkdir(folder.c_str(), 0700);
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() ||
      (found.st_mode & 077) != 0) {
    throw CommError(
        "{} must be a folder of yours that nobody else can open; remove it or give --master HOST:PORT",
        folder.string());
  }
}

std::unique_ptr<LifelineServer> serve(const Address& where, const std::string& key, int size,
                                      milliseconds timeout) {
  ServerOptions options;
  options.host = where.host;
  options.port = where.port;
  options.size = size;
  options.timeout = timeout;
  options.host_rank = 0;
  options.key = key;
  return std::make_unique<LifelineServer>(options);
}

std::shared_ptr<Lifeline> connect(const Invitation& to, int rank, int size, milliseconds timeout,
                                  milliseconds patience) {
  return std::make_shared<Lifeline>(LifelineOptions{to.address, rank, size, timeout, patience, to.key});
}

/// The file may still be a former run's: whatever it leads to, look again until the deadline.
std::shared_ptr<Lifeline> connect_by_file(const std::filesystem::path& file, int rank, int size,
                                          milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  std::string obstacle = "rank 0 has not written it";
  while (Clock::now() < deadline) {
    std::ifstream stream(file);
    std::string text;
    std::getline(stream, text);
    if (const auto invitation = parse_invitation(text)) {
      try {
        return connect(*invitation, rank, size, timeout, milliseconds(1));
      } catch (const CommError& error) {
        obstacle = error.what();
      }
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  throw CommError(
      "rank {} found no meeting point in {} within {:.3g} s ({}); start all workers together or give "
      "--master HOST:PORT",
      rank, file.string(), std::chrono::duration<double>(timeout).count(), obstacle);
}

/// torchrun's agent listens at MASTER_PORT with a store of c10d's own.
c10::intrusive_ptr<c10d::Store> agent_store(const MeetingPoint& point, milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(point.address.port);
  options.isServer = false;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(point.address.host, options);
}

Encounter meet_by_agent(const MeetingPoint& point, int rank, int size, milliseconds timeout) {
  const std::string name = "syncopate/" + point.topic;
  try {
    const auto store = agent_store(point, timeout);
    Encounter encounter;
    Invitation invitation;
    invitation.address.host = point.address.host;
    invitation.key = random_key();
    if (rank == 0) {
      encounter.server = serve(invitation.address, invitation.key, size, timeout);
      invitation.address.port = encounter.server->port();
      const std::string text = invitation.text();
      store->set(name, std::vector<uint8_t>(text.begin(), text.end()));
    } else {
      const std::vector<uint8_t> text = store->get(name);
      const auto found = parse_invitation(std::string(text.begin(), text.end()));
      if (!found) throw CommError("torchrun's store at {} holds no meeting point", point.address.text());
      invitation = *found;
    }
    encounter.lifeline = connect(invitation, rank, size, timeout, timeout);
    return encounter;
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw CommError("rank {} cannot use torchrun's store at {}: {}; give --master HOST:PORT with a free port",
                    rank, point.address.text(), text.substr(0, text.find('\n')));
  }
}

Encounter meet_by_file(const MeetingPoint& point, int rank, int size, milliseconds timeout) {
  Encounter encounter;
  make_private_folder(point.file.parent_path());
  if (rank == 0) {
    Invitation invitation;
    invitation.address.host = "127.0.0.1";
    invitation.key = random_key();
    encounter.server = serve(invitation.address, invitation.key, size, timeout);
    invitation.address.port = encounter.server->port();
    write_file_atomically(point.file, invitation.text() + "\n");
    encounter.lifeline = connect(invitation, rank, size, timeout, timeout);
  } else {
    encounter.lifeline = connect_by_file(point.file, rank, size, timeout);
  }
  return encounter;
}

Encounter find_each_other(const MeetingPoint& point, int rank, int size, milliseconds timeout) {
  switch (point.kind) {
    case MeetingPoint::Kind::kFile:
      return meet_by_file(point, rank, size, timeout);
    case MeetingPoint::Kind::kAgent:
      return meet_by_agent(point, rank, size, timeout);
    default:
      break;
  }
  Encounter encounter;
  if (point.kind == MeetingPoint::Kind::kAddress && rank == 0) {
    encounter.server = serve(point.address, point.key, size, timeout);
  }
  encounter.lifeline = connect({point.address, point.key}, rank, size, timeout, timeout);
  return encounter;
}

}  // namespace

std::string random_key() {
  std::random_device device;
  std::string key;
  for (int word = 0; word < 4; ++word) key += fmt::format("{:08x}", device());
  return key;
}

Encounter meet(const MeetingPoint& point, int rank, int size, milliseconds timeout) {
  Encounter encounter = find_each_other(point, rank, size, timeout);
  encounter.lifeline->await_all(timeout);
  if (point.kind == MeetingPoint::Kind::kFile && rank == 0) {
    std::error_code ignored;
    std::filesystem::remove(point.file, ignored);
  }
  return encounter;
}

}  // namespace syncopate::comm
