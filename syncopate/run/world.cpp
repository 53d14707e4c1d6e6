#include "syncopate/run/world.h"

#include <unistd.h>

#include <filesystem>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/mpi.h"
#include "syncopate/comm/nccl.h"

extern char** environ;

namespace syncopate::run {
namespace {

using lifeline::Address;
using lifeline::RendezvousPoint;

constexpr int kUsualPort = 29500;

/// Reads a launcher's variables; names the variable in every complaint.
class Variables {
 public:
  explicit Variables(const Environment& all) : all_(all) {}
  bool has(const std::string& name) const { return !text(name).empty(); }
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = all_.find(name);
    return found == all_.end() || found->second.empty() ? otherwise : found->second;
  }
  int number(const std::string& name) const {
    const auto value = parse_integer(text(name));
    if (!value || *value < 0 || *value > 1 << 20) {
      throw ConfigError("the environment variable {} should be a small number but is \"{}\"", name,
                        text(name));
    }
    return static_cast<int>(*value);
  }
  int number(const std::string& name, int otherwise) const { return has(name) ? number(name) : otherwise; }

 private:
  const Environment& all_;
};

Address parse_master(const std::string& text, const char* where) {
  const auto address = lifeline::parse_address(text);
  if (!address)
    throw ConfigError("{} should be HOST:PORT with a port from 1 to 65535, got \"{}\"", where, text);
  return *address;
}

RendezvousPoint rank_zero_serves(const Address& address) {
  RendezvousPoint point;
  point.kind = RendezvousPoint::Kind::kAddress;
  point.address = address;
  return point;
}

/// The same, but out of others' reach where a launcher says that all its processes are on this machine.
RendezvousPoint rank_zero_serves(const Address& address, const World& world) {
  return rank_zero_serves(world.local_size == world.size ? Address{"127.0.0.1", address.port} : address);
}

/// All workers are on this machine: they meet on loopback, through a file that only they know how to find.
RendezvousPoint by_file(const std::string& job) {
  std::string name = job;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  }
  RendezvousPoint point;
  point.kind = RendezvousPoint::Kind::kFile;
  point.file = std::filesystem::temp_directory_path() / fmt::format("syncopate-{}", ::geteuid()) /
               (name + ".rendezvous");
  return point;
}

void require_fit(const World& world, const char* how) {
  if (world.size < 1 || world.rank >= world.size) {
    throw ConfigError(
        "{}: rank {} does not fit {} workers; ranks go from 0 to the number of workers less one", how,
        world.rank, world.size);
  }
}

/// A rendezvous that somebody named, if somebody did.
std::optional<Address> named_master(const WorldFlags& flags, const Variables& variables) {
  if (!flags.master.empty()) return parse_master(flags.master, "--master");
  if (!variables.has("MASTER_ADDR")) return std::nullopt;
  return Address{variables.text("MASTER_ADDR"), variables.number("MASTER_PORT", kUsualPort)};
}

World from_own_launcher(const Variables& variables) {
  World world;
  world.launcher = "syncopate";
  world.rank = variables.number("SYNCOPATE_RANK");
  world.size = variables.number("SYNCOPATE_WORLD_SIZE");
  // Those of one host, where they sit on an emulated network.
  world.local_rank = variables.number("SYNCOPATE_LOCAL_RANK", world.rank);
  world.local_size = variables.number("SYNCOPATE_LOCAL_WORLD_SIZE", world.size);
  world.rendezvous.kind = RendezvousPoint::Kind::kServed;
  world.rendezvous.address = parse_master(variables.text("SYNCOPATE_MASTER"), "SYNCOPATE_MASTER");
  require_fit(world, "SYNCOPATE_RANK");
  return world;
}

World by_hand(const WorldFlags& flags) {
  if (!flags.rank || !flags.world_size) {
    throw ConfigError(
        "{} needs {} too: a worker started by hand is told --rank R --world-size N --master HOST:PORT",
        flags.rank ? "--rank" : "--world-size", flags.rank ? "--world-size" : "--rank");
  }
  World world;
  world.launcher = "manual";
  world.rank = *flags.rank;
  world.size = *flags.world_size;
  if (world.size < 1) throw ConfigError("--world-size must be 1 or more, got {}", world.size);
  if (world.rank < 0 || world.rank >= world.size) {
    throw ConfigError("--rank must be from 0 to {} with --world-size {}, got {}", world.size - 1, world.size,
                      world.rank);
  }
  if (flags.workers && *flags.workers != world.size) {
    throw ConfigError(
        "--workers {} starts the workers itself; leave it out beside --rank and --world-size {}",
        *flags.workers, world.size);
  }
  if (flags.master.empty() && world.size > 1) {
    throw ConfigError(
        "--rank and --world-size need --master HOST:PORT, an address of rank 0's machine and a free port");
  }
  if (!flags.master.empty()) world.rendezvous = rank_zero_serves(parse_master(flags.master, "--master"));
  // Who else is on this machine cannot be known; on loopback everybody is.
  const std::string& host = world.rendezvous.address.host;
  const bool together = host.rfind("127.", 0) == 0 || host == "localhost" || host == "::1";
  world.local_rank = together ? world.rank : 0;
  world.local_size = together ? world.size : 1;
  return world;
}

World from_torchrun(const WorldFlags& flags, const Variables& variables) {
  World world;
  world.launcher = "torchrun";
  world.rank = variables.number("RANK");
  world.size = variables.number("WORLD_SIZE");
  world.local_rank = variables.number("LOCAL_RANK", 0);
  world.local_size = variables.number("LOCAL_WORLD_SIZE", world.size == 1 ? 1 : world.local_rank + 1);
  require_fit(world, "RANK and WORLD_SIZE");
  const std::string attempt = variables.text("TORCHELASTIC_RESTART_COUNT", "0");
  const bool agent_owns_port = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const bool together = variables.has("LOCAL_WORLD_SIZE") && world.local_size == world.size;
  world.job = variables.text("TORCHELASTIC_RUN_ID");
  if (!flags.master.empty()) {
    world.rendezvous = rank_zero_serves(parse_master(flags.master, "--master"), world);
  } else if (together && agent_owns_port) {
    world.rendezvous = by_file(fmt::format("torchrun-{}-{}-{}", variables.text("TORCHELASTIC_RUN_ID", "none"),
                                           variables.text("MASTER_PORT"), attempt));
  } else {
    const Address master{variables.text("MASTER_ADDR"), variables.number("MASTER_PORT")};
    world.rendezvous = rank_zero_serves(together ? Address{"127.0.0.1", master.port} : master);
    if (agent_owns_port) {
      world.rendezvous.kind = RendezvousPoint::Kind::kAgent;
      world.rendezvous.topic = attempt;
    }
  }
  return world;
}

World from_mpirun(const WorldFlags& flags, const Variables& variables) {
  World world;
  world.launcher = "mpirun";
  world.rank = variables.number("OMPI_COMM_WORLD_RANK");
  world.size = variables.number("OMPI_COMM_WORLD_SIZE");
  world.local_rank = variables.number("OMPI_COMM_WORLD_LOCAL_RANK", 0);
  world.local_size = variables.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
  require_fit(world, "OMPI_COMM_WORLD_RANK");
  world.job = variables.text("PMIX_NAMESPACE", variables.text("OMPI_MCA_ess_base_jobid"));
  if (const auto master = named_master(flags, variables)) {
    world.rendezvous = rank_zero_serves(*master, world);
  } else if (world.local_size == world.size) {
    world.rendezvous = by_file("mpirun-" + (world.job.empty() ? "job" : world.job));
  } else {
    throw ConfigError(
        "mpirun started workers on several machines: add --master HOST:PORT (a program of your own: set "
        "MASTER_ADDR and MASTER_PORT), where HOST is the machine of rank 0 as the others reach it and PORT "
        "is "
        "free there");
  }
  return world;
}

/// How many tasks of the step this node has: "2(x3),1" gives nodes 0 to 2 two each and node 3 one.
int tasks_on_node(const std::string& list, int node, int otherwise) {
  int passed = 0;
  for (const std::string_view part : split(list, ',')) {
    const size_t bracket = part.find("(x");
    const auto tasks = parse_integer(part.substr(0, bracket));
    const auto repeat = bracket == std::string_view::npos
                            ? std::optional<int64_t>(1)
                            : parse_integer(part.substr(bracket + 2, part.size() - bracket - 3));
    if (!tasks || !repeat) return otherwise;
    passed += static_cast<int>(*repeat);
    if (node < passed) return static_cast<int>(*tasks);
  }
  return otherwise;
}

int tasks_of_step(const Variables& variables) {
  return variables.number("SLURM_STEP_NUM_TASKS", variables.number("SLURM_NTASKS", 1));
}

World from_slurm(const WorldFlags& flags, const Variables& variables) {
  World world;
  world.launcher = "slurm";
  world.rank = variables.number("SLURM_PROCID");
  world.size = tasks_of_step(variables);
  world.local_rank = variables.number("SLURM_LOCALID", 0);
  require_fit(world, "SLURM_PROCID");
  const std::string nodes = variables.text("SLURM_STEP_NODELIST", variables.text("SLURM_NODELIST"));
  const bool one_name = nodes.find(',') == std::string::npos && nodes.find('[') == std::string::npos;
  const int node_count =
      variables.number("SLURM_STEP_NUM_NODES", variables.number("SLURM_NNODES", one_name ? 1 : 2));
  const std::string tasks =
      variables.text("SLURM_STEP_TASKS_PER_NODE", variables.text("SLURM_TASKS_PER_NODE"));
  world.local_size = node_count == 1
                         ? world.size
                         : tasks_on_node(tasks, variables.number("SLURM_NODEID", 0), world.local_rank + 1);
  const std::string job = variables.text("SLURM_JOB_ID", "0"), step = variables.text("SLURM_STEP_ID");
  world.job = fmt::format("{}.{}", job, step);
  if (!flags.master.empty()) {
    world.rendezvous = rank_zero_serves(parse_master(flags.master, "--master"), world);
  } else if (node_count == 1) {
    world.rendezvous = by_file(fmt::format("slurm-{}-{}", job, step));
  } else {
    // The same on every node, and hardly another job's on that node.
    const uint64_t mixed = mix_key(static_cast<uint64_t>(parse_integer(job).value_or(0)),
                                   static_cast<uint64_t>(parse_integer(step).value_or(0)));
    const int port = variables.number("MASTER_PORT", 20000 + static_cast<int>(mixed % 10000));
    world.rendezvous = rank_zero_serves({variables.text("MASTER_ADDR", first_host(nodes)), port});
  }
  return world;
}

}  // namespace

std::string first_host(const std::string& node_list) {
  const size_t end = node_list.find_first_of("[,");
  if (end == std::string::npos || node_list[end] == ',') return node_list.substr(0, end);
  const size_t close = node_list.find(']', end);
  if (close == std::string::npos) throw ConfigError("cannot read Slurm's list of nodes \"{}\"", node_list);
  const size_t number_end = node_list.find_first_of("-,]", end + 1);
  const size_t name_end = node_list.find_first_of(",[", close + 1);
  return node_list.substr(0, end) + node_list.substr(end + 1, number_end - end - 1) +
         node_list.substr(close + 1, name_end == std::string::npos ? name_end : name_end - close - 1);
}

namespace {

/// Of a launcher that started several processes; nothing when none did.
std::optional<World> from_launcher(const WorldFlags& flags, const Variables& variables) {
  if (variables.has("RANK") && variables.has("WORLD_SIZE")) {
    if (flags.master.empty() && !(variables.has("MASTER_ADDR") && variables.has("MASTER_PORT"))) {
      throw ConfigError(
          "RANK and WORLD_SIZE are set but MASTER_ADDR and MASTER_PORT are not; set them, or give "
          "--master HOST:PORT, or unset RANK and WORLD_SIZE to start workers here");
    }
    return from_torchrun(flags, variables);
  }
  if (variables.has("OMPI_COMM_WORLD_RANK") && variables.has("OMPI_COMM_WORLD_SIZE")) {
    return from_mpirun(flags, variables);
  }
  if (variables.has("SLURM_STEP_ID") && variables.has("SLURM_PROCID")) return from_slurm(flags, variables);
  return std::nullopt;
}

/// How many processes a launcher has started, this one included, by its variables alone.
int started_by_launcher(const Variables& variables) {
  if (variables.has("RANK") && variables.has("WORLD_SIZE")) return variables.number("WORLD_SIZE");
  if (variables.has("OMPI_COMM_WORLD_RANK")) return variables.number("OMPI_COMM_WORLD_SIZE", 1);
  return variables.has("SLURM_STEP_ID") && variables.has("SLURM_PROCID") ? tasks_of_step(variables) : 1;
}

World of_process(const WorldFlags& flags, const Variables& variables) {
  if (variables.has("SYNCOPATE_RANK") && variables.has("SYNCOPATE_WORLD_SIZE"))
    return from_own_launcher(variables);
  if (flags.rank || flags.world_size) return by_hand(flags);
  if (flags.workers && started_by_launcher(variables) == 1) return {};  // an interactive step, say
  if (auto world = from_launcher(flags, variables)) {
    if (flags.workers && *flags.workers + flags.servers != world->size) {
      throw ConfigError(
          "{0} has started {1} processes, which are the workers: --workers {2} would start {2} more in each; "
          "leave it out, or start the program without {0}",
          world->launcher, world->size, *flags.workers);
    }
    return *world;
  }
  if (!flags.master.empty() && !flags.workers) {
    throw ConfigError(
        "--master needs --rank R and --world-size N too, or a launcher (torchrun, mpirun, srun)");
  }
  return {};
}

}  // namespace

World find_world(const WorldFlags& flags, const Environment& environment) {
  if (flags.workers && *flags.workers < 1)
    throw ConfigError("--workers must be 1 or more, got {}", *flags.workers);
  const Variables variables(environment);
  World world = of_process(flags, variables);
  world.rendezvous.key =
      flags.token.empty() || world.launcher == "syncopate" ? variables.text("SYNCOPATE_TOKEN") : flags.token;
  world.insecure = flags.insecure;
  return world;
}

Environment environment_of_process() {
  Environment all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return all;
}

void require_backend(const std::string& backend, int64_t processes) {
  if (backend == "nccl" && processes > 1) comm::require_nccl();
  if (backend == "mpi" && processes > 1) comm::require_mpi(static_cast<int>(processes));
}

comm::Membership join(const World& world, const std::string& backend, std::chrono::milliseconds timeout,
                      const lifeline::Claims& claims, const std::function<void(const std::string&)>& note) {
  using Kind = RendezvousPoint::Kind;
  const RendezvousPoint& point = world.rendezvous;
  const bool by_address = point.kind == Kind::kAddress || point.kind == Kind::kAgent;
  if (world.size > 1 && by_address && point.key.empty() && !lifeline::is_loopback(point.address)) {
    if (!world.insecure) {
      throw ConfigError(
          "other machines can reach the rendezvous {}: give all workers the same secret in SYNCOPATE_TOKEN "
          "or "
          "--token-file FILE, or --insecure to let in whoever comes",
          point.address.text());
    }
    if (note && world.rank == 0)
      note(fmt::format("whoever reaches {} can join this run (--insecure)", point.address.text()));
  }
  comm::CommOptions options;
  options.rank = world.rank;
  options.size = world.size;
  options.rendezvous = point;
  options.backend = backend;
  options.timeout = timeout;
  options.claims = claims;
  options.note = note;
  return comm::open(options);
}

}  // namespace syncopate::run
