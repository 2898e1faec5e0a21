// Moves a body from one connection to another, no faster than the slower of the two.
//
// What was read and not yet written waits in the one buffer, and nothing more is read meanwhile. So
// a body of any size costs a buffer. The framing is taken off and put on anew, never passed
// through. One thread, no allocation.
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

// The bytes of a connection that were read and not yet understood.
struct Window {
  std::span<char> buffer;
  std::size_t floor = 0;  // what stands before is still needed
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] std::string_view bytes() const noexcept {
    return {buffer.data() + begin, end - begin};
  }
  [[nodiscard]] std::span<char> room() const noexcept { return buffer.subspan(end); }
  // Makes room behind what is there.
  void compact() noexcept;
};

class BodyPump {
 public:
  // Enough for the price of a turn not to show, and for others to wait no longer for theirs than
  // for a few requests.
  static constexpr std::size_t kBytesPerTurn = 65536;

  enum class Progress : std::uint8_t {
    waiting,
    paused,  // there is more to move, but kBytesPerTurn were: others first
    done,
    source_ended,  // too early, or its connection failed
    source_wrong,  // fault() tells what is wrong with the body
    sink_failed,
  };

  struct Task {
    net::Stream* from = nullptr;
    net::Stream* to = nullptr;
    Window* window = nullptr;
    net::BodyReader reader;
    bool chunked = false;            // how it goes out
    bool trailers = false;           // the receiver wants them
    std::uint64_t bytes_max = 0;     // of the body; more is a fault with the status 413; 0: any
    std::string_view head;           // goes before the body
    std::span<char> trailer_buffer;  // not the one that the head is in
  };

  void reset() noexcept;  // as if it had never begun
  void begin(const Task& task) noexcept;
  [[nodiscard]] Progress pump() noexcept;

  // Has begun, and all of the body went out.
  [[nodiscard]] bool is_done() const noexcept { return finished_ && first_ == count_; }
  [[nodiscard]] bool has_begun() const noexcept { return task_.from != nullptr; }
  // The source has to bring more, or the sink to take more.
  [[nodiscard]] bool waits_for_source() const noexcept { return first_ == count_ && !finished_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  // of the body, so far
  // Grows with every byte that comes from the source or goes to the sink.
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }
  // Bytes that the sink's socket took, the head and the framing included.
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  // Of the source, once it is done; good until the window is used again.
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
  bool finished_ = false;  // everything was gathered
  std::uint64_t sent_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t moved_ = 0;
  net::HttpFault fault_;
};

}  // namespace sluice::gateway
