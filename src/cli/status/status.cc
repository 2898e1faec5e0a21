#include "cli/status/status.h"

#include "base/duration.h"
#include "cli/status/status_text.h"
#include "cli/terminal.h"
#include "config/secret_file.h"
#include "net/http/client/blocking_client.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <unistd.h>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::string_view kCommand = "status";

Parsed<net::ClientRequest> request_of(const StatusOptions& options) {
  net::ClientRequest request{.path = "/v1/status"};
  if (options.token_file.empty()) return request;
  const Parsed<std::string> token = config::read_secret(options.token_file);
  if (!token) return tl::unexpected(token.error());
  request.headers.emplace_back("authorization", "Bearer " + *token);
  return request;
}

Parsed<net::HttpOrigin> origin_of(const StatusOptions& options) {
  Parsed<net::HttpUrl> server = net::HttpUrl::parse_server(options.server);
  if (!server) return tl::unexpected(std::move(server.error()));
  if (server->is_tls) {
    return mistake(fmt::format("{} is not reached by http", options.server),
                   "the admin listener has no TLS: write http://127.0.0.1:9090");
  }
  return net::HttpOrigin::load(*std::move(server));
}

Parsed<StatusText> understood(const net::HttpResult& response, const StatusOptions& options,
                              const Output& output) {
  if (!response) {
    return mistake(response.error().message,
                   "does it run, with listen: {admin: ...}? --server says where");
  }
  if (response->status == 401) {
    return mistake("the server requires a token, or another one", "give it by --token-file FILE");
  }
  if (response->status != 200) {
    return mistake(fmt::format("{} answers with {}", options.server, response->status),
                   "is that the address of `listen: admin`?");
  }
  Parsed<StatusText> status = status_text(response->body, output);
  if (status && options.json) status->text = response->body;
  return status;
}

ExitCode show(const Parsed<StatusText>& status, Output& output) {
  if (!status) {
    complain(kCommand, status.error().text());
    return ExitCode::failure;
  }
  output.write(status->text);
  output.flush();
  return status->is_serving ? ExitCode::ok : ExitCode::negative;
}

// On a terminal each replaces the one before; elsewhere they follow one another.
ExitCode watch(net::BlockingHttpClient& client, const net::HttpOrigin& origin,
               const net::ClientRequest& request, Nanos every, const StatusOptions& options) {
  constexpr std::string_view kFromTheTop = "\x1b[H\x1b[2J";
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  Output output;
  ExitCode code = ExitCode::ok;
  while (!output.failed()) {
    const Parsed<StatusText> status = understood(client.fetch(origin, request), options, output);
    if (is_terminal && !options.json) output.write(kFromTheTop);
    code = show(status, output);
    if (!is_terminal && !options.json) output.write("\n");
    client.pause(every);
  }
  return output.finish(kCommand, code);
}

ExitCode refused(const Diagnostic& mistake, ExitCode code) {
  complain(kCommand, mistake.text());
  return code;
}

}  // namespace

ExitCode status(const StatusOptions& options) {
  static const SystemClock kClock;
  const Parsed<net::HttpOrigin> origin = origin_of(options);
  if (!origin) return refused(origin.error(), ExitCode::usage);
  const Parsed<Nanos> every = parse_duration(options.watch.value_or("1s"));
  if (!every || *every <= Nanos{0}) {
    return refused({"--watch takes a length of time", "write --watch 1s"}, ExitCode::usage);
  }
  const Parsed<net::ClientRequest> request = request_of(options);
  if (!request) return refused(request.error(), ExitCode::failure);
  const auto client = net::BlockingHttpClient::create(kClock);
  if (!client) return refused(client.error(), ExitCode::failure);
  if (options.watch) return watch(**client, *origin, *request, *every, options);
  Output output;
  const ExitCode code =
      show(understood((*client)->fetch(*origin, *request), options, output), output);
  return output.finish(kCommand, code);
}

}  // namespace sluice::cli
