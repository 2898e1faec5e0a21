// Asks a server over HTTP/1.1, one question at a time.
//
// The connection stays open for the next question if the server agrees. One that was idle may have
// been closed by the server just now, so a question that may be repeated is asked once more on a
// new one. Addresses of a name are tried in turn. Everything is bounded: the time for all of it,
// the size of the answer. One thread; loop and resolver outlive it.
#pragma once

#include "net/event_loop.h"
#include "net/http/body_reader.h"
#include "net/http/client/http_target.h"
#include "net/http/response_parser.h"
#include "net/lookup.h"
#include "net/resolver.h"
#include "net/stream.h"
#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::net {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Host and Content-Length are added.
struct HttpQuestion {
  std::string method = "GET";
  std::string path = "/";  // with the query
  HttpHeaders headers;
  std::string body;
};

struct HttpAnswer {
  std::uint16_t status = 0;
  HttpHeaders headers;
  std::string body;

  // The first of that name, whatever its case; empty if there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept;
};

struct HttpClientOptions {
  Nanos within{std::chrono::seconds{5}};
  std::size_t body_bytes_max = std::size_t{64} << 20U;
};

class HttpClient {
 public:
  // The callback may ask again, or end the client.
  HttpClient(EventLoop& loop, Resolver& resolver, HttpTarget target,
             Callback<const Parsed<HttpAnswer>&> on_answer, const HttpClientOptions& options = {});
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient() = default;

  // Not while it waits for an answer. The callback hears of it later, never from inside.
  void ask(const HttpQuestion& question);
  [[nodiscard]] bool is_waiting() const noexcept { return phase_ != Phase::idle; }
  [[nodiscard]] std::uint64_t connections() const noexcept {
    return connections_;
  }  // opened so far

 private:
  enum class Phase : std::uint8_t { idle, looking_up, connecting, sending, head, body };

  void begin();
  void look_up();
  void on_found(const Resolution& found);
  void connect_to_next();
  void on_stream();
  void on_late();
  [[nodiscard]] bool step();  // false: nothing more can be done now
  [[nodiscard]] bool establish();
  [[nodiscard]] bool send();
  [[nodiscard]] bool read_head();
  [[nodiscard]] bool read_body();
  [[nodiscard]] bool read_more();
  void broken(const std::string& why);
  void finish(Parsed<HttpAnswer> answer);
  void fail(const std::string& why);

  EventLoop& loop_;
  Resolver& resolver_;
  const HttpTarget target_;
  const Callback<const Parsed<HttpAnswer>&> on_answer_;
  const HttpClientOptions options_;

  Task begin_;
  Timer late_;
  Lookup lookup_;
  std::optional<Stream> stream_;
  std::vector<SocketAddress> addresses_;  // not yet tried
  Phase phase_ = Phase::idle;
  bool is_reused_ = false;  // the connection has answered before
  bool may_be_repeated_ = false;
  std::uint64_t connections_ = 0;

  std::string out_;
  std::size_t sent_ = 0;
  std::string in_;
  std::array<HeaderView, kHeadersMax> headers_;
  std::array<HeaderView, 16> trailers_;
  ResponseParser parser_;
  BodyReader reader_;
  bool keep_alive_ = false;
  HttpAnswer answer_;
};

}  // namespace sluice::net
