#include "syncopate/comm/mpi/link.h"

#include <mpi.h>

#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/comm/group.h"

namespace syncopate::comm {
namespace {

std::string in_words(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, static_cast<size_t>(length));
}

void require_success(int code, const char* call) {
  if (code != MPI_SUCCESS) throw CommError("MPI reports in {}: {}", call, in_words(code));
}

MPI_Comm communicator(const std::shared_ptr<void>& held) { return *static_cast<MPI_Comm*>(held.get()); }

/// MPI counts in int. What is larger than that is some of a larger type and a rest.
class Bytes {
 public:
  explicit Bytes(size_t bytes) {
    constexpr size_t kBlock = size_t{1} << 20;
    if (bytes <= static_cast<size_t>(std::numeric_limits<int>::max())) {
      count_ = static_cast<int>(bytes);
      return;
    }
    MPI_Datatype block{}, blocks{};
    require_success(MPI_Type_contiguous(static_cast<int>(kBlock), MPI_BYTE, &block), "MPI_Type_contiguous");
    require_success(MPI_Type_contiguous(static_cast<int>(bytes / kBlock), block, &blocks),
                    "MPI_Type_contiguous");
    const int lengths[] = {1, static_cast<int>(bytes % kBlock)};
    const MPI_Aint places[] = {0, static_cast<MPI_Aint>(bytes - bytes % kBlock)};
    const MPI_Datatype types[] = {blocks, MPI_BYTE};
    require_success(MPI_Type_create_struct(2, lengths, places, types, &type_), "MPI_Type_create_struct");
    require_success(MPI_Type_commit(&type_), "MPI_Type_commit");
    MPI_Type_free(&block);
    MPI_Type_free(&blocks);
  }
  ~Bytes() {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);  // transfers under way keep it
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  int count_ = 1;
  MPI_Datatype type_ = MPI_BYTE;
};

}  // namespace

/// Does one call after the other. Shared with whoever is left behind.
struct MpiProcess::Thread {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::packaged_task<void()>> calls;

  void work() {
    while (true) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !calls.empty(); });
      std::packaged_task<void()> call = std::move(calls.front());
      calls.pop_front();
      lock.unlock();
      call();
    }
  }
};

MpiProcess& MpiProcess::instance() {
  static auto* const process = new MpiProcess;  // its thread may be in MPI when the process ends
  return *process;
}

MpiProcess::MpiProcess() : thread_(std::make_shared<Thread>()) {
  std::thread([thread = thread_] { thread->work(); }).detach();
}

std::shared_future<void> MpiProcess::run(std::function<void()> call) {
  std::packaged_task<void()> task(std::move(call));
  std::shared_future<void> result = task.get_future().share();
  const std::lock_guard lock(thread_->mutex);
  thread_->calls.push_back(std::move(task));
  thread_->changed.notify_one();
  return result;
}

std::shared_future<void> MpiProcess::start() {
  if (ending_.valid()) throw CommError("MPI has ended in this process and cannot be started again");
  if (starting_.valid()) return starting_;
  starting_ = run([this] {
    int given = MPI_THREAD_SINGLE;
    require_success(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given), "MPI_Init_thread");
    // By default MPI ends the process at an error, before anybody is told.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (given < MPI_THREAD_MULTIPLE)
      throw ConfigError("this MPI does not let several threads call it (MPI_THREAD_MULTIPLE); use gloo");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    void* highest = nullptr;
    int there = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &there);
    highest_tag_ = there != 0 ? *static_cast<int*>(highest) : 32767;  // what the standard promises
  });
  return starting_;
}

std::shared_future<void> MpiProcess::end() {
  if (!ending_.valid()) ending_ = run([] { require_success(MPI_Finalize(), "MPI_Finalize"); });
  return ending_;
}

void MpiLink::connect() {
  MPI_Group all{}, some{};
  require_success(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
  require_success(MPI_Group_incl(all, static_cast<int>(processes_.size()), processes_.data(), &some),
                  "MPI_Group_incl");
  MPI_Comm made = MPI_COMM_NULL;
  require_success(MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &made), "MPI_Comm_create_group");
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  communicator_ = std::make_shared<MPI_Comm>(made);
}

/// One entry for each transfer.
struct MpiCalls::Requests {
  struct Expected {
    size_t bytes = 0;
    int tag = 0;
    bool arrives = false;  ///< from another rank, as a message whose length is its own
    int peer = kAnyRank;   ///< from or to whom; none of a collective call
  };
  std::vector<MPI_Request> all;
  std::vector<Expected> expected;
  std::vector<MPI_Status> statuses;

  MPI_Request* next(Expected what) {
    expected.push_back(what);
    return &all.emplace_back(MPI_REQUEST_NULL);
  }
};

MpiCalls::MpiCalls(std::shared_ptr<const MpiLink> link)
    : link_(std::move(link)), requests_(std::make_unique<Requests>()) {}

MpiCalls::~MpiCalls() {
  if (requests_->all.empty()) return;
  (void)requests_.release();
  for (at::Tensor& tensor : kept_) (void)tensor.unsafeReleaseTensorImpl();
}

void MpiCalls::send(const void* data, size_t bytes, int to, int tag) {
  const Bytes what(bytes);
  require_success(MPI_Isend(data, what.count(), what.type(), to, tag, communicator(link_->communicator_),
                            requests_->next({.bytes = bytes, .tag = tag, .peer = to})),
                  "MPI_Isend");
}

void MpiCalls::receive(void* into, size_t bytes, int from, int tag) {
  const Bytes what(bytes);
  require_success(MPI_Irecv(into, what.count(), what.type(), from == kAnyRank ? MPI_ANY_SOURCE : from, tag,
                            communicator(link_->communicator_),
                            requests_->next({.bytes = bytes, .tag = tag, .arrives = true, .peer = from})),
                  "MPI_Irecv");
}

void MpiCalls::broadcast(void* data, size_t bytes, int root) {
  const Bytes what(bytes);
  require_success(MPI_Ibcast(data, what.count(), what.type(), root, communicator(link_->communicator_),
                             requests_->next({.bytes = bytes})),
                  "MPI_Ibcast");
}

void MpiCalls::barrier() {
  require_success(MPI_Ibarrier(communicator(link_->communicator_), requests_->next({})), "MPI_Ibarrier");
}

std::vector<int> MpiCalls::awaited() const {
  std::vector<int> ranks;
  for (size_t k = 0; k < requests_->all.size(); ++k) {
    const int peer = requests_->expected[k].peer;
    if (peer == kAnyRank) continue;
    int finished = 0;
    MPI_Request_get_status(requests_->all[k], &finished, MPI_STATUS_IGNORE);
    if (finished == 0) ranks.push_back(peer);
  }
  return ranks;
}

bool MpiCalls::done() {
  std::vector<MPI_Request>& all = requests_->all;
  if (all.empty()) return true;
  std::vector<MPI_Status>& statuses = requests_->statuses;
  statuses.resize(all.size());
  int finished = 0;
  const int code = MPI_Testall(static_cast<int>(all.size()), all.data(), &finished, statuses.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) require_success(code, "MPI_Testall");
  if (code == MPI_SUCCESS && finished == 0) return false;
  for (size_t k = 0; k < all.size(); ++k) {
    const Requests::Expected& expected = requests_->expected[k];
    const int complaint = code == MPI_ERR_IN_STATUS ? statuses[k].MPI_ERROR : MPI_SUCCESS;
    if (complaint == MPI_ERR_PENDING) continue;
    MPI_Count came = static_cast<MPI_Count>(expected.bytes);
    if (expected.arrives && complaint == MPI_SUCCESS) MPI_Get_elements_x(&statuses[k], MPI_BYTE, &came);
    if (complaint == MPI_ERR_TRUNCATE || came != static_cast<MPI_Count>(expected.bytes)) {
      throw CommError("rank {} sent {} with tag {} where {} bytes were expected", statuses[k].MPI_SOURCE,
                      complaint == MPI_SUCCESS ? fmt::format("{} bytes", came) : "more", expected.tag,
                      expected.bytes);
    }
    require_success(complaint, "a transfer");
  }
  all.clear();
  requests_->expected.clear();
  kept_.clear();
  return true;
}

}  // namespace syncopate::comm
