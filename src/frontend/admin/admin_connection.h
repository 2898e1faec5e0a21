// A client of the admin listener, and what it asks.
//
//     idle -> head -> body -> answering -> idle ...
//
// The head stays where it was read until the request is answered, since views point into it; the
// body is decoded into a text of its own. Of a client that sends many requests at once, one is
// answered at a time, and between two of them all others have their turn. One thread.
#pragma once

#include "frontend/admin/message.h"
#include "net/acceptor.h"
#include "net/event_loop.h"
#include "net/http/body_reader.h"
#include "net/http/request_parser.h"
#include "net/intrusive_list.h"
#include "net/stream.h"
#include <sluice/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sluice::admin {

class AdminServer;

class AdminConnection : public net::ListHook {
 public:
  AdminConnection(AdminServer& server, net::Peer peer);
  AdminConnection(const AdminConnection&) = delete;
  AdminConnection& operator=(const AdminConnection&) = delete;
  ~AdminConnection() = default;

  // False: it is of no use and may be destroyed.
  [[nodiscard]] bool open(FileDescriptor descriptor);

  // When it last took some bytes of an answer, or was given one.
  [[nodiscard]] MonoTime last_progress() const noexcept { return last_progress_; }

 private:
  enum class Phase : std::uint8_t { idle, head, body, answering };
  // What is to be done next.
  enum class Step : std::uint8_t { again, wait, gone };

  void drive();
  void on_timer();
  void run(Step next);
  [[nodiscard]] Step step();
  [[nodiscard]] Step wait_for_request();
  [[nodiscard]] Step read_head();
  [[nodiscard]] Step read_body();
  [[nodiscard]] Step read_more();
  [[nodiscard]] Step handle();
  [[nodiscard]] Step fail(std::uint16_t status, const char* why);
  [[nodiscard]] Step answer(const Reply& reply, bool with_body);
  [[nodiscard]] Step write_answer();
  void note_progress() noexcept;
  [[nodiscard]] Step next_request();
  [[nodiscard]] Request request() const noexcept;

  // Holds the largest head, and behind it pieces of the body, the longest of which are trailers.
  static constexpr std::size_t kBufferBytes = 40960;

  AdminServer& server_;
  net::Peer peer_;
  net::Stream stream_;
  net::Timer timer_;
  net::Task next_turn_;
  Phase phase_ = Phase::idle;
  bool keep_alive_ = true;
  std::uint32_t requests_ = 0;
  MonoTime last_progress_;
  std::unique_ptr<char[]> buffer_ = std::make_unique<char[]>(kBufferBytes);
  std::size_t head_end_ = 0;  // 0: not read yet
  std::size_t end_ = 0;       // of what was read
  std::array<HeaderView, net::kHeadersMax> headers_;
  std::array<HeaderView, 16> trailers_;
  net::RequestParser parser_;
  net::BodyReader reader_;
  std::string body_;
  std::string out_;
  std::size_t written_ = 0;  // of out_
};

}  // namespace sluice::admin
