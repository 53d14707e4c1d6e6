#include "syncopate/watch/page_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "syncopate/base/error.h"

namespace syncopate::watch {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kMostWatchers = 16;  ///< each holds a thread
/// A browser that has gone is noticed when something is written to it.
constexpr std::chrono::seconds kSignOfLife(10);

}  // namespace

class PageServer::Implementation {
 public:
  Implementation(std::string page, int port) : page_(std::move(page)) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kMostWatchers + 4); };
    // The library's default lets two programs share a port: half of the requests would go to the other.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    port_ =
        port == 0 ? server_.bind_to_any_port(kLoopback) : (server_.bind_to_port(kLoopback, port) ? port : -1);
    if (port_ <= 0) {
      throw ConfigError(
          "port {} of this machine is in use or reserved; choose another with --port, or leave it out", port);
    }
    server_.set_default_headers({{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}});
    // A page of another site whose name was made to point here must not read what is served.
    server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const std::string host = request.get_header_value("Host");
      if (host == fmt::format("{}:{}", kLoopback, port_) || host == fmt::format("localhost:{}", port_))
        return httplib::Server::HandlerResponse::Unhandled;
      response.status = 403;
      response.set_content("open " + address() + "\n", "text/plain");
      return httplib::Server::HandlerResponse::Handled;
    });
    server_.Get("/", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(page_, "text/html; charset=utf-8");
    });
    server_.Get("/events", [this](const httplib::Request&, httplib::Response& response) {
      if (watchers_ >= kMostWatchers) {
        response.status = 503;
        response.set_content("too many pages are open\n", "text/plain");
        return;
      }
      response.set_chunked_content_provider("text/event-stream", events());
    });
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // Before it runs, stop() would be forgotten.
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  ~Implementation() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    server_.stop();
    thread_.join();
  }

  std::string address() const { return fmt::format("http://{}:{}/", kLoopback, port_); }
  int watchers() const { return watchers_; }

  void publish(std::string text) {
    {
      const std::lock_guard lock(mutex_);
      text_ = std::move(text);
      ++version_;
    }
    changed_.notify_all();
  }

 private:
  /// One browser's stream. The count ends with the last copy of the provider.
  httplib::ContentProviderWithoutLength events() {
    struct Counted {
      explicit Counted(std::atomic<int>& count) : count_(count) { ++count_; }
      ~Counted() { --count_; }
      Counted(const Counted&) = delete;
      Counted& operator=(const Counted&) = delete;
      std::atomic<int>& count_;
      int64_t seen = 0;
    };
    auto mine = std::make_shared<Counted>(watchers_);
    return [this, mine](size_t, httplib::DataSink& sink) {
      std::string event = ": still here\n\n";
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, kSignOfLife, [&] { return closing_ || version_ != mine->seen; });
        if (closing_) {
          sink.done();
          return false;
        }
        if (version_ != mine->seen) {
          mine->seen = version_;
          event = "event: results\ndata: " + text_ + "\n\n";
        }
      }
      return sink.write(event.data(), event.size());
    };
  }

  std::string page_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::atomic<int> watchers_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  int64_t version_ = 0;
  bool closing_ = false;
};

PageServer::PageServer(std::string page, int port)
    : implementation_(std::make_unique<Implementation>(std::move(page), port)) {}
PageServer::~PageServer() = default;
std::string PageServer::address() const { return implementation_->address(); }
int PageServer::watchers() const { return implementation_->watchers(); }
void PageServer::publish(std::string text) { implementation_->publish(std::move(text)); }

}  // namespace syncopate::watch
