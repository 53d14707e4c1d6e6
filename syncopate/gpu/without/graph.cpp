#include "syncopate/gpu/graph.h"

#include "syncopate/base/error.h"

// A program without CUDA's toolkit: callers ask `built` first.
namespace syncopate::gpu {
namespace {

[[noreturn]] void missing() { throw InternalError("this program was built without CUDA's toolkit"); }

}  // namespace

bool built() { return false; }
bool capturing(c10::Device) { return false; }
void use_own_stream(c10::Device) { missing(); }

struct Graph::Recorded {};
Graph::Graph(const Graph*) { missing(); }
Graph::~Graph() = default;
void Graph::record(const std::function<void()>&) { missing(); }
void Graph::launch() { missing(); }

struct SideStream::Stream {};
SideStream::SideStream(c10::Device) { missing(); }
SideStream::~SideStream() = default;
void SideStream::run(const std::function<void()>&) { missing(); }

struct Mark::Event {};
Mark::Mark() { missing(); }
Mark::~Mark() = default;
void Mark::set() { missing(); }
void Mark::wait() { missing(); }
void Mark::hold() { missing(); }

}  // namespace syncopate::gpu
