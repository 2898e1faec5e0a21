// The connections of a client to one origin, and the requests that wait for one.
#pragma once

#include "net/http/client/client_connection.h"
#include "net/http/client/http_call.h"
#include "net/http/client/http_origin.h"
#include "net/intrusive_list.h"

#include <cstddef>
#include <string>

namespace sluice::net {

struct HttpClientOptions;

class ClientPool {
 public:
  ClientPool(HttpClient& client, HttpOrigin origin, std::string key);
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;
  ~ClientPool();

  // On an idle connection, on a new one, or in line. False: the line is full.
  [[nodiscard]] bool add(HttpCall& call);
  // A request, that has forgotten this, is of no more interest. Null: it was in line. May end this.
  void give_up(ClientConnection* connection);
  // By connections, whose request is over. May end this.
  void release(ClientConnection& connection, bool is_reusable);

  [[nodiscard]] const std::string& server() const noexcept { return server_; }
  [[nodiscard]] const HttpOrigin& origin() const noexcept { return origin_; }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] const HttpClientOptions& options() const noexcept;
  [[nodiscard]] EventLoop& loop() const noexcept;
  [[nodiscard]] Resolver& resolver() const noexcept;
  void count_connection() noexcept;

 private:
  void pump();
  [[nodiscard]] ClientConnection* free_connection();
  void destroy(ClientConnection& connection) noexcept;
  void end_if_empty();

  HttpClient& client_;
  const HttpOrigin origin_;
  const std::string key_;
  const std::string server_;
  List<HttpCall> waiting_;
  List<ClientConnection> idle_;  // the one used last is behind; owned, as the others
  List<ClientConnection> busy_;
  std::size_t waiting_count_ = 0;
  std::size_t count_ = 0;  // of connections
};

}  // namespace sluice::net
