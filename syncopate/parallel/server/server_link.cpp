#include "syncopate/parallel/server/server_link.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

namespace syncopate::parallel {

at::Tensor ServerLink::bytes_of(const void* data, size_t size) {
  const at::Tensor bytes = at::empty({static_cast<int64_t>(size)}, at::kByte);
  std::memcpy(bytes.data_ptr(), data, size);
  return bytes;
}

void ServerLink::receive_bytes(void* data, size_t size) {
  const at::Tensor bytes = at::empty({static_cast<int64_t>(size)}, at::kByte);
  receive(bytes).wait();
  std::memcpy(data, bytes.data_ptr(), size);
}

void ServerLink::send_text(const std::string& text) {
  send_plain(static_cast<int64_t>(text.size())).wait();
  if (!text.empty()) send(bytes_of(text.data(), text.size())).wait();
}

std::string ServerLink::receive_text() {
  std::string text(static_cast<size_t>(receive_plain<int64_t>()), '\0');
  if (!text.empty()) receive_bytes(text.data(), text.size());
  return text;
}

std::vector<ServerLink> open_links(comm::Group& world, int workers) {
  const int servers = world.size() - workers, rank = world.rank();
  const int rounds = std::max(workers, servers);
  std::map<int, std::unique_ptr<comm::Group>> by_peer;
  // Round k pairs worker w with server (w + k) modulo the rounds, so that every pair meets once.
  for (int round = 0; round < rounds; ++round) {
    const bool serves = rank >= workers;
    const int worker = serves ? (rank - workers - round + rounds) % rounds : rank;
    const int server = serves ? rank - workers : (rank + round) % rounds;
    const bool paired = worker < workers && server < servers;
    const int alone = workers * servers + rank;
    auto pair = world.split(paired ? worker * servers + server : alone, rank);
    if (!paired) continue;
    if (serves) pair->set_timeout(std::chrono::hours(24 * 365));
    by_peer[serves ? worker : server] = std::move(pair);
  }
  std::vector<ServerLink> links;
  for (auto& [peer, pair] : by_peer) links.emplace_back(std::move(pair));
  return links;
}

}  // namespace syncopate::parallel
