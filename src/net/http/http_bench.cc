// What a head costs: to read, to write, and to read with Boost.Beast instead.
//
// One thread, one request of eight headers as a browser or a client library sends it, in the cache.
// Beast's parser is told where to put the message, as any program would; what it allocates for
// each header is part of its price.

#include "net/http/body_reader.h"
#include "net/http/head_writer.h"
#include "net/http/http_date.h"
#include "net/http/request_parser.h"
#include "net/http/response_parser.h"

#include <benchmark/benchmark.h>
#include <boost/beast/http.hpp>

#include <array>
#include <string>
#include <string_view>

namespace sluice::net {
namespace {

namespace beast = boost::beast;

constexpr std::string_view kRequest =
    "GET /v1/users/4711/orders?limit=20&after=2024-05-01 HTTP/1.1\r\n"
    "Host: api.example.com\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: application/json, text/plain, */*\r\n"
    "Accept-Encoding: gzip, deflate, br\r\n"
    "Accept-Language: en-US,en;q=0.5\r\n"
    "Authorization: Bearer 5f2b8d0c1a9e4c7d8b6a5f4e3d2c1b0a\r\n"
    "X-Request-Id: 7d3f6a10-52c4-4f0e-9d3b-0a4c1be2f001\r\n"
    "Connection: keep-alive\r\n"
    "\r\n";

constexpr std::string_view kSmallRequest =
    "GET /v1/things HTTP/1.1\r\nHost: localhost:8080\r\n\r\n";

constexpr std::string_view kResponse =
    "HTTP/1.1 200 OK\r\n"
    "Server: app\r\n"
    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "Content-Type: application/json; charset=utf-8\r\n"
    "Content-Length: 1234\r\n"
    "Cache-Control: no-store\r\n"
    "ETag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"\r\n"
    "Vary: Accept-Encoding\r\n"
    "Connection: keep-alive\r\n"
    "\r\n";

void read_request(benchmark::State& state, std::string_view text) {
  const std::string bytes{text};
  std::array<HeaderView, kHeadersMax> headers;
  RequestParser parser{headers};
  for (auto _ : state) {
    parser.reset();
    benchmark::DoNotOptimize(parser.parse(bytes));
    benchmark::DoNotOptimize(parser.head());
    benchmark::ClobberMemory();
  }
}

void read_request_with_beast(benchmark::State& state, std::string_view text) {
  const std::string bytes{text};
  for (auto _ : state) {
    beast::http::request_parser<beast::http::empty_body> parser;
    beast::error_code error;
    benchmark::DoNotOptimize(parser.put(boost::asio::buffer(bytes), error));
    benchmark::DoNotOptimize(parser.get());
    benchmark::ClobberMemory();
  }
}

void read_response(benchmark::State& state) {
  const std::string bytes{kResponse};
  std::array<HeaderView, kHeadersMax> headers;
  ResponseParser parser{headers};
  for (auto _ : state) {
    parser.expect_answer_to("GET");
    benchmark::DoNotOptimize(parser.parse(bytes));
    benchmark::DoNotOptimize(parser.head());
    benchmark::ClobberMemory();
  }
}

void write_request_again(benchmark::State& state) {
  std::array<HeaderView, kHeadersMax> headers;
  RequestParser parser{headers};
  if (parser.parse(kRequest).state != HeadParse::State::complete) state.SkipWithError("refused");
  std::array<char, 4096> buffer;
  for (auto _ : state) {
    HeadWriter writer{buffer};
    write_request(writer, parser.head());
    benchmark::DoNotOptimize(writer.finish());
    benchmark::ClobberMemory();
  }
}

// Chunks of a kilobyte, all received at once.
void read_chunks(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 64; ++i) body += "400\r\n" + std::string(1024, 'x') + "\r\n";
  body += "0\r\n\r\n";
  for (auto _ : state) {
    BodyReader reader{{.kind = BodyFraming::Kind::chunked}, {}};
    std::string_view rest = body;
    while (!reader.is_done()) {
      const BodyPiece piece = reader.feed(rest);
      benchmark::DoNotOptimize(piece.data);
      rest.remove_prefix(piece.consumed);
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(body.size()));
}

void format_date(benchmark::State& state) {
  std::array<char, kHttpDateBytes> text;
  std::int64_t now = 1'800'000'000;
  for (auto _ : state) benchmark::DoNotOptimize(format_http_date(++now, text));
}

BENCHMARK_CAPTURE(read_request, eight_headers, kRequest);
BENCHMARK_CAPTURE(read_request_with_beast, eight_headers, kRequest);
BENCHMARK_CAPTURE(read_request, one_header, kSmallRequest);
BENCHMARK_CAPTURE(read_request_with_beast, one_header, kSmallRequest);
BENCHMARK(read_response);
BENCHMARK(write_request_again);
BENCHMARK(read_chunks);
BENCHMARK(format_date);

}  // namespace
}  // namespace sluice::net
