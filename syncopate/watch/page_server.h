#pragma once

#include <memory>
#include <string>

namespace syncopate::watch {

/// Serves one page to browsers on this machine and sends them what is published as server-sent events: at
/// `/` the page, at `/events` the newest text at once and every later one (event "results").
class PageServer {
 public:
  /// Port 0: any that is free. Throws ConfigError when the port is in use or must not be used.
  PageServer(std::string page, int port);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  std::string address() const;     ///< "http://127.0.0.1:41234/"
  int watchers() const;            ///< browsers that listen now
  void publish(std::string text);  ///< without line ends

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace syncopate::watch
