// Moves a body from one connection to another, no faster than the slower of the two.
//
// Bytes that were read and not yet written wait in one buffer, and nothing more is read meanwhile.
// So a body of any size costs one buffer. The framing is removed and rewritten, never forwarded.
// One thread, no allocation.
#pragma once

#include "net/http/body_reader.h"
#include "net/http/head_writer.h"
#include "net/stream.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <sys/uio.h>

namespace sluice::gateway {

// The bytes of a connection that were read and not yet parsed.
struct Window {
  std::span<char> buffer;
  std::size_t floor = 0;  // bytes before it are still needed
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] std::string_view bytes() const noexcept {
    return {buffer.data() + begin, end - begin};
  }
  [[nodiscard]] std::span<char> room() const noexcept { return buffer.subspan(end); }
  // Makes room behind the bytes.
  void compact() noexcept;
};

class BodyPump {
 public:
  // Large enough to hide the cost of a turn, and small enough that other connections wait no longer
  // than for a few requests.
  static constexpr std::size_t kBytesPerTurn = 65536;

  enum class Progress : std::uint8_t {
    waiting,
    paused,  // kBytesPerTurn moved, more is left: others first
    done,
    source_ended,  // too early, or its connection failed
    source_wrong,  // fault() says what is wrong with the body
    sink_failed,
  };

  struct Task {
    net::Stream* from = nullptr;
    net::Stream* to = nullptr;
    Window* window = nullptr;
    net::BodyReader reader;
    bool chunked = false;            // the outgoing framing
    bool trailers = false;           // the receiver wants them
    std::uint64_t bytes_max = 0;     // of the body; more is a fault with status 413; 0: any
    std::string_view head;           // precedes the body
    std::span<char> trailer_buffer;  // apart from `head`
  };

  void reset() noexcept;  // as if never begun
  void begin(const Task& task) noexcept;
  [[nodiscard]] Progress pump() noexcept;

  // Has begun, and the whole body is written.
  [[nodiscard]] bool is_done() const noexcept { return finished_ && first_ == count_; }
  [[nodiscard]] bool has_begun() const noexcept { return task_.from != nullptr; }
  // True: the source has to send more. False: the sink has to take more.
  [[nodiscard]] bool waits_for_source() const noexcept { return first_ == count_ && !finished_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  // of the body, so far
  // Grows with every byte read from the source or written to the sink.
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }
  // Bytes that the sink's socket took, headers and framing included.
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  // Of the source, once done; valid until the window is used again.
  [[nodiscard]] std::span<const HeaderView> trailers() const noexcept {
    return task_.reader.trailers();
  }
  [[nodiscard]] net::HttpFault fault() const noexcept { return fault_; }

 private:
  static constexpr std::size_t kChunks = 4;  // gathered for one write
  static constexpr std::size_t kParts = 3 * kChunks + 2;

  [[nodiscard]] bool gather() noexcept;
  void add(std::string_view part) noexcept;
  void add_data(std::string_view data) noexcept;
  void add_end() noexcept;
  [[nodiscard]] net::IoResult flush() noexcept;

  Task task_;
  std::array<iovec, kParts> parts_{};
  std::size_t first_ = 0;  // not yet written
  std::size_t count_ = 0;
  std::array<std::array<char, net::kChunkHeadBytesMax>, kChunks> chunk_heads_{};
  std::size_t chunks_ = 0;
  bool finished_ = false;  // everything is gathered
  std::uint64_t sent_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t moved_ = 0;
  net::HttpFault fault_;
};

}  // namespace sluice::gateway
