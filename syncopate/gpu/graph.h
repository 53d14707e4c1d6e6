#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>

// What a GPU does without being told anew in every step. A program that was built without CUDA's toolkit has
// none of it (`built`), and nothing but `built` and `capturing` may be called then.
namespace syncopate::gpu {

/// Whether this program has graphs and kernels of its own for GPUs.
bool built();

/// Whether what this thread launches on `device` is being recorded into a graph: nobody may wait for it then.
bool capturing(c10::Device device);

/// From here on this thread's work goes to a stream of its own: the default one cannot be recorded.
void use_own_stream(c10::Device device);

/// Work of a GPU, recorded once and launched again as a whole. It reads and writes the tensors that it was
/// recorded with, where they were. Random numbers are drawn anew, by the generator's seed at that time.
class Graph {
 public:
  /// Graphs that are never launched at the same time may share the memory for what they make on the way.
  explicit Graph(const Graph* shares_memory_with = nullptr);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Records what `work` launches on this thread's stream (and autograd's threads on the same one); nothing
  /// runs. What `work` throws is thrown here, and so is what cannot be recorded: then there is no graph.
  void record(const std::function<void()>& work);
  void launch();

 private:
  struct Recorded;
  std::unique_ptr<Recorded> recorded_;
};

/// A second stream: what is launched there goes on beside the rest.
class SideStream {
 public:
  explicit SideStream(c10::Device device);
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;
  void run(const std::function<void()>& work);  ///< this thread's stream is that one meanwhile

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

/// A mark in this thread's stream that the host, or another stream, can wait for.
class Mark {
 public:
  Mark();
  ~Mark();
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  void set();   ///< after what was launched so far
  void wait();  ///< until the device is there
  void hold();  ///< what this thread launches from here on waits for it; the host does not

 private:
  struct Event;
  std::unique_ptr<Event> event_;
};

}  // namespace syncopate::gpu
