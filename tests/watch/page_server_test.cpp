#include "syncopate/watch/page_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "syncopate/base/error.h"

namespace syncopate::watch {
namespace {

using std::chrono::seconds;

int port_of(const PageServer& server) {
  const std::string address = server.address();
  return std::stoi(address.substr(address.rfind(':') + 1));
}

/// A browser that listens, in a thread of its own.
class Listener {
 public:
  explicit Listener(int port) : client_("127.0.0.1", port) {
    client_.set_read_timeout(seconds(30));
    thread_ = std::thread([this] {
      client_.Get("/events", [this](const char* data, size_t length) {
        const std::lock_guard lock(mutex_);
        heard_.append(data, length);
        changed_.notify_all();
        return !leave_;
      });
    });
  }
  ~Listener() {
    client_.stop();
    thread_.join();
  }
  bool hears(const std::string& text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(20), [&] { return heard_.find(text) != std::string::npos; });
  }
  std::string heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  /// Hangs up at the next thing that it hears.
  void leave() {
    const std::lock_guard lock(mutex_);
    leave_ = true;
  }

 private:
  httplib::Client client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string heard_;
  bool leave_ = false;
  std::thread thread_;
};

bool eventually(const std::function<bool()>& happens) {
  for (int i = 0; i < 2000; ++i) {
    if (happens()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(PageServer, ServesThePageAndSendsWhatIsPublished) {
  PageServer server("<p>hello</p>", 0);
  httplib::Client client("127.0.0.1", port_of(server));
  const auto page = client.Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->body, "<p>hello</p>");
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(client.Get("/etc/passwd")->status, 404);
  server.publish("{\"a\":1}");
  Listener early(port_of(server));
  EXPECT_TRUE(early.hears("event: results\ndata: {\"a\":1}\n\n"));
  server.publish("{\"a\":2}");
  EXPECT_TRUE(early.hears("data: {\"a\":2}\n\n"));
  Listener late(port_of(server));
  EXPECT_TRUE(late.hears("data: {\"a\":2}\n\n"));
  EXPECT_EQ(late.heard().find("{\"a\":1}"), std::string::npos) << "who comes late hears the newest alone";
  EXPECT_EQ(server.watchers(), 2);
}

TEST(PageServer, KnowsWhoListens) {
  PageServer server("", 0);
  EXPECT_EQ(server.watchers(), 0);
  {
    Listener listener(port_of(server));
    EXPECT_TRUE(eventually([&] { return server.watchers() == 1; }));
    listener.leave();
    server.publish("1");
    EXPECT_TRUE(eventually([&] {
      server.publish("2");
      return server.watchers() == 0;
    }));
  }
}

TEST(PageServer, RefusesAPortInUse) {
  PageServer first("", 0);
  try {
    PageServer second("", port_of(first));
    FAIL() << "two servers at one port";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(fmt::format("port {}", port_of(first))), std::string::npos);
  }
}

TEST(PageServer, AnswersOnlyThoseWhoMeanThisMachine) {
  PageServer server("secret", 0);
  httplib::Client client("127.0.0.1", port_of(server));
  const std::string port = std::to_string(port_of(server));
  const auto other = client.Get("/", {{"Host", "evil.example:" + port}});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->status, 403);
  EXPECT_EQ(other->body.find("secret"), std::string::npos);
  EXPECT_EQ(client.Get("/", {{"Host", "localhost:" + port}})->body, "secret");
}

}  // namespace
}  // namespace syncopate::watch
