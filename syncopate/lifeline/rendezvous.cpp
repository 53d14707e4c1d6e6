#include "syncopate/lifeline/rendezvous.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/lifeline/proof.h"

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

std::unique_ptr<LifelineServer> serve(const Invitation& at, const Attendant& who) {
  LifelineServerOptions options;
  options.host = at.address.host;
  options.port = at.address.port;
  options.size = who.size;
  options.timeout = who.timeout;
  options.host_rank = 0;
  options.key = at.key;
  options.claims = who.claims;
  options.on_refusal = options.on_silence = who.note;
  return std::make_unique<LifelineServer>(options);
}

std::shared_ptr<Lifeline> connect(const Invitation& to, const Attendant& who, milliseconds patience) {
  LifelineOptions options{to.address, who.rank, who.size, who.timeout, patience, to.key, who.claims};
  if (who.rank == 1) options.on_silence = who.note;  // one is enough
  return std::make_shared<Lifeline>(options);
}

/// The file may still be a former run's: whatever it leads to, look again until the deadline.
std::shared_ptr<Lifeline> connect_by_file(const std::filesystem::path& file, const Attendant& who) {
  const Clock::time_point deadline = Clock::now() + who.timeout;
  std::string obstacle = "rank 0 has not written it";
  while (Clock::now() < deadline) {
    std::ifstream stream(file);
    std::string text;
    std::getline(stream, text);
    if (const auto invitation = parse_invitation(text)) {
      try {
        return connect(*invitation, who, milliseconds(1));
      } catch (const RefusedError& error) {
        if (!error.for_its_key()) throw;
        obstacle = error.what();
      } catch (const CommError& error) {
        obstacle = error.what();
      }
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  throw CommError(
      "rank {} found no rendezvous in {} within {:.3g} s ({}); start all workers together, or set "
      "a rendezvous address (master HOST:PORT)",
      who.rank, file.string(), std::chrono::duration<double>(who.timeout).count(), obstacle);
}

Connection connect_by_agent(const RendezvousPoint& point, const Attendant& who,
                            const OpenAgentStore& open_store) {
  const std::string name = "syncopate/" + point.topic;
  try {
    check(static_cast<bool>(open_store), "a rendezvous by torchrun's agent needs its store");
    const std::unique_ptr<AgentStore> store = open_store(point.address, who.timeout);
    Connection connection;
    Invitation invitation;
    invitation.address.host = point.address.host;
    invitation.key = point.key.empty() ? random_key() : point.key;
    if (who.rank == 0) {
      connection.server = serve(invitation, who);
      invitation.address.port = connection.server->port();
      // A token that was given is not told: whoever reads the store must know it.
      store->set(name, Invitation{invitation.address, point.key.empty() ? invitation.key : "-"}.text());
    } else {
      const auto found = parse_invitation(store->get(name));
      if (!found) throw CommError("torchrun's store at {} holds no rendezvous", point.address.text());
      invitation.address = found->address;
      if (point.key.empty()) invitation.key = found->key;
    }
    connection.lifeline = connect(invitation, who, who.timeout);
    return connection;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw CommError(
        "rank {} cannot use torchrun's store at {}: {}; set a rendezvous address (master HOST:PORT) with a "
        "free port",
        who.rank, point.address.text(), first_line(error.what()));
  }
}

Connection connect_through_file(const RendezvousPoint& point, const Attendant& who) {
  Connection connection;
  make_private_folder(point.file.parent_path());
  if (who.rank == 0) {
    Invitation invitation;
    invitation.address.host = "127.0.0.1";
    invitation.key = random_key();
    connection.server = serve(invitation, who);
    invitation.address.port = connection.server->port();
    write_file_atomically(point.file, invitation.text() + "\n");
    connection.lifeline = connect(invitation, who, who.timeout);
  } else {
    connection.lifeline = connect_by_file(point.file, who);
  }
  return connection;
}

Connection find_each_other(const RendezvousPoint& point, const Attendant& who,
                           const OpenAgentStore& open_store) {
  switch (point.kind) {
    case RendezvousPoint::Kind::kFile:
      return connect_through_file(point, who);
    case RendezvousPoint::Kind::kAgent:
      return connect_by_agent(point, who, open_store);
    default:
      break;
  }
  Connection connection;
  const Invitation invitation{point.address, point.key};
  if (point.kind == RendezvousPoint::Kind::kAddress && who.rank == 0) {
    connection.server = serve(invitation, who);
  }
  connection.lifeline = connect(invitation, who, who.timeout);
  return connection;
}

}  // namespace

Connection rendezvous(const RendezvousPoint& point, const Attendant& who, const OpenAgentStore& open_store) {
  Connection connection = find_each_other(point, who, open_store);
  connection.lifeline->await_all(who.timeout);
  if (point.kind == RendezvousPoint::Kind::kFile && who.rank == 0) {
    std::error_code ignored;
    std::filesystem::remove(point.file, ignored);
  }
  return connection;
}

}  // namespace syncopate::lifeline
