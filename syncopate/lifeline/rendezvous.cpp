#include "syncopate/lifeline/rendezvous.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"

namespace syncopate::lifeline {
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
        "{} must be a folder that only you can open; remove it, or set a rendezvous address (master "
        "HOST:PORT)",
        folder.string());
  }
}

std::unique_ptr<LifelineServer> serve(const Address& where, const std::string& key, int size,
                                      milliseconds timeout) {
  LifelineServerOptions options;
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
      "rank {} found no rendezvous in {} within {:.3g} s ({}); start all workers together, or set "
      "a rendezvous address (master HOST:PORT)",
      rank, file.string(), std::chrono::duration<double>(timeout).count(), obstacle);
}

Connection connect_by_agent(const RendezvousPoint& point, int rank, int size, milliseconds timeout,
                            const OpenAgentStore& open_store) {
  const std::string name = "syncopate/" + point.topic;
  try {
    check(static_cast<bool>(open_store), "a rendezvous by torchrun's agent needs its store");
    const std::unique_ptr<AgentStore> store = open_store(point.address, timeout);
    Connection connection;
    Invitation invitation;
    invitation.address.host = point.address.host;
    invitation.key = random_key();
    if (rank == 0) {
      connection.server = serve(invitation.address, invitation.key, size, timeout);
      invitation.address.port = connection.server->port();
      store->set(name, invitation.text());
    } else {
      const auto found = parse_invitation(store->get(name));
      if (!found) throw CommError("torchrun's store at {} holds no rendezvous", point.address.text());
      invitation = *found;
    }
    connection.lifeline = connect(invitation, rank, size, timeout, timeout);
    return connection;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw CommError(
        "rank {} cannot use torchrun's store at {}: {}; set a rendezvous address (master HOST:PORT) with a "
        "free port",
        rank, point.address.text(), text.substr(0, text.find('\n')));
  }
}

Connection connect_through_file(const RendezvousPoint& point, int rank, int size, milliseconds timeout) {
  Connection connection;
  make_private_folder(point.file.parent_path());
  if (rank == 0) {
    Invitation invitation;
    invitation.address.host = "127.0.0.1";
    invitation.key = random_key();
    connection.server = serve(invitation.address, invitation.key, size, timeout);
    invitation.address.port = connection.server->port();
    write_file_atomically(point.file, invitation.text() + "\n");
    connection.lifeline = connect(invitation, rank, size, timeout, timeout);
  } else {
    connection.lifeline = connect_by_file(point.file, rank, size, timeout);
  }
  return connection;
}

Connection find_each_other(const RendezvousPoint& point, int rank, int size, milliseconds timeout,
                           const OpenAgentStore& open_store) {
  switch (point.kind) {
    case RendezvousPoint::Kind::kFile:
      return connect_through_file(point, rank, size, timeout);
    case RendezvousPoint::Kind::kAgent:
      return connect_by_agent(point, rank, size, timeout, open_store);
    default:
      break;
  }
  Connection connection;
  if (point.kind == RendezvousPoint::Kind::kAddress && rank == 0) {
    connection.server = serve(point.address, point.key, size, timeout);
  }
  connection.lifeline = connect({point.address, point.key}, rank, size, timeout, timeout);
  return connection;
}

}  // namespace

std::string random_key() {
  std::random_device device;
  std::string key;
  for (int word = 0; word < 4; ++word) key += fmt::format("{:08x}", device());
  return key;
}

Connection rendezvous(const RendezvousPoint& point, int rank, int size, milliseconds timeout,
                      const OpenAgentStore& open_store) {
  Connection connection = find_each_other(point, rank, size, timeout, open_store);
  connection.lifeline->await_all(timeout);
  if (point.kind == RendezvousPoint::Kind::kFile && rank == 0) {
    std::error_code ignored;
    std::filesystem::remove(point.file, ignored);
  }
  return connection;
}

}  // namespace syncopate::lifeline
