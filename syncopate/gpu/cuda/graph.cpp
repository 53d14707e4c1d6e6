#include "syncopate/gpu/graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace syncopate::gpu {

bool built() { return true; }

bool capturing(c10::Device device) {
  // Asked of a CPU, CUDA must not be woken: there may be no driver.
  return device.is_cuda() &&
         c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
}

void use_own_stream(c10::Device device) {
  c10::cuda::set_device(device.index());
  const c10::cuda::CUDAStream old = c10::cuda::getCurrentCUDAStream(device.index());
  const c10::cuda::CUDAStream own = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index());
  old.synchronize();  // what was launched on the old one is not waited for by the new one
  c10::cuda::setCurrentCUDAStream(own);
}

struct Graph::Recorded {
  at::cuda::CUDAGraph graph;
  c10::cuda::MempoolId_t shared{0, 0};
};

Graph::Graph(const Graph* shares_memory_with) : recorded_(std::make_unique<Recorded>()) {
  if (shares_memory_with != nullptr) recorded_->shared = shares_memory_with->recorded_->graph.pool();
}
Graph::~Graph() = default;

void Graph::record(const std::function<void()>& work) {
  // Other threads may go on calling CUDA meanwhile: the loader pins memory.
  recorded_->graph.capture_begin(recorded_->shared, cudaStreamCaptureModeThreadLocal);
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    recorded_->graph.capture_end();
  } catch (...) {
    if (!failure) failure = std::current_exception();
  }
  if (!failure) return;
  (void)cudaGetLastError();  // libtorch would find it at its next call
  std::rethrow_exception(failure);
}

void Graph::launch() { recorded_->graph.replay(); }

struct SideStream::Stream {
  c10::cuda::CUDAStream stream;
};

SideStream::SideStream(c10::Device device)
    : stream_(new Stream{c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())}) {}
SideStream::~SideStream() = default;

void SideStream::run(const std::function<void()>& work) {
  const c10::cuda::CUDAStreamGuard guard(stream_->stream);
  work();
}

struct Mark::Event {
  cudaEvent_t event = nullptr;
};

Mark::Mark() : event_(std::make_unique<Event>()) {
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_->event, cudaEventDisableTiming | cudaEventBlockingSync));
}
Mark::~Mark() {
  if (event_->event != nullptr) (void)cudaEventDestroy(event_->event);
}
void Mark::set() {
  C10_CUDA_CHECK(cudaEventRecord(event_->event, c10::cuda::getCurrentCUDAStream().stream()));
}
void Mark::wait() { C10_CUDA_CHECK(cudaEventSynchronize(event_->event)); }
void Mark::hold() {
  C10_CUDA_CHECK(cudaStreamWaitEvent(c10::cuda::getCurrentCUDAStream().stream(), event_->event, 0));
}

}  // namespace syncopate::gpu
