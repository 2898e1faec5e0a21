#include "cli/status/status.h"

#include "app/configuration.h"
#include "base/duration.h"
#include "cli/status/status_text.h"
#include "cli/terminal.h"
#include "net/event_loop.h"
#include "net/http/client/http_client.h"
#include "net/resolver.h"
#include <sluice/clock.h>

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <unistd.h>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::string_view kCommand = "status";

// A client whose answers are waited for: a command has nothing else to do.
class Asking {
 public:
  Asking(std::unique_ptr<net::EventLoop> loop, net::HttpTarget target)
      : loop_(std::move(loop)),
        pause_(net::Callback<>::to<&Asking::on_pause_over>(*this)),
        client_(*loop_, resolver_, std::move(target),
                net::Callback<const Parsed<net::HttpAnswer>&>::to<&Asking::on_answer>(*this)) {}

  [[nodiscard]] Parsed<net::HttpAnswer> ask(const net::HttpQuestion& question) {
    client_.ask(question);
    loop_->run();
    return answer_;
  }
  void pause(Nanos time) {
    loop_->set(pause_, time);
    loop_->run();
  }

 private:
  void on_answer(const Parsed<net::HttpAnswer>& answer) {
    answer_ = answer;
    loop_->stop();
  }
  void on_pause_over() { loop_->stop(); }

  std::unique_ptr<net::EventLoop> loop_;
  net::Resolver resolver_;
  net::Timer pause_;
  net::HttpClient client_;
  Parsed<net::HttpAnswer> answer_;
};

Parsed<net::HttpQuestion> question_of(const StatusOptions& options) {
  net::HttpQuestion question{.path = "/v1/status"};
  if (options.token_file.empty()) return question;
  const Parsed<std::string> token = app::read_secret(options.token_file);
  if (!token) return tl::unexpected(token.error());
  question.headers.emplace_back("authorization", "Bearer " + *token);
  return question;
}

Parsed<StatusText> understood(const Parsed<net::HttpAnswer>& answer, const StatusOptions& options,
                              const Output& output) {
  if (!answer) {
    return mistake(answer.error().message,
                   "does it run, with listen: {admin: ...}? --server says where");
  }
  if (answer->status == 401) {
    return mistake("the server wants another token, or one at all", "give it by --token-file FILE");
  }
  if (answer->status != 200) {
    return mistake(fmt::format("{} answers with {}", options.server, answer->status),
                   "is that the address of `listen: admin`?");
  }
  Parsed<StatusText> status = status_text(answer->body, output);
  if (status && options.json) status->text = answer->body;
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
ExitCode watch(Asking& asking, const net::HttpQuestion& question, Nanos every,
               const StatusOptions& options) {
  constexpr std::string_view kFromTheTop = "\x1b[H\x1b[2J";
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  Output output;
  ExitCode code = ExitCode::ok;
  while (!output.failed()) {
    const Parsed<StatusText> status = understood(asking.ask(question), options, output);
    if (is_terminal && !options.json) output.write(kFromTheTop);
    code = show(status, output);
    if (!is_terminal && !options.json) output.write("\n");
    asking.pause(every);
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
  Parsed<net::HttpTarget> target = net::HttpTarget::parse(options.server);
  if (!target) return refused(target.error(), ExitCode::usage);
  const Parsed<Nanos> every = parse_duration(options.watch.value_or("1s"));
  if (!every || *every <= Nanos{0}) {
    return refused({"--watch takes a length of time", "write --watch 1s"}, ExitCode::usage);
  }
  const Parsed<net::HttpQuestion> question = question_of(options);
  if (!question) return refused(question.error(), ExitCode::failure);
  auto loop = net::EventLoop::create(kClock);
  if (!loop) return refused(loop.error(), ExitCode::failure);
  Asking asking{*std::move(loop), *std::move(target)};
  if (options.watch) return watch(asking, *question, *every, options);
  Output output;
  const ExitCode code = show(understood(asking.ask(*question), options, output), output);
  return output.finish(kCommand, code);
}

}  // namespace sluice::cli
