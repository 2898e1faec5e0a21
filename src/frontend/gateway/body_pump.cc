#include "frontend/gateway/body_pump.h"

#include <cstring>

namespace sluice::gateway {

void Window::compact() noexcept {
  if (begin == floor) return;
  std::memmove(buffer.data() + floor, buffer.data() + begin, end - begin);
  end = floor + (end - begin);
  begin = floor;
}

void BodyPump::reset() noexcept {
  task_.from = nullptr;
  first_ = count_ = chunks_ = 0;
  finished_ = false;
  bytes_ = moved_ = sent_ = 0;
  fault_ = {};
}

void BodyPump::begin(const Task& task) noexcept {
  task_ = task;
  first_ = count_ = chunks_ = 0;
  finished_ = false;
  bytes_ = moved_ = sent_ = 0;
  fault_ = {};
  add(task.head);
}

void BodyPump::add(std::string_view part) noexcept {
  if (part.empty()) return;
  parts_[count_++] = net::part_of(part);
}

void BodyPump::add_data(std::string_view data) noexcept {
  if (data.empty()) return;
  bytes_ += data.size();
  if (!task_.chunked) return add(data);
  add(net::format_chunk_head(data.size(), chunk_heads_[chunks_++]));
  add(data);
  add(net::kChunkEnd);
}

void BodyPump::add_end() noexcept {
  finished_ = true;
  if (!task_.chunked) return;
  const std::span<const HeaderView> trailers = task_.reader.trailers();
  if (trailers.empty() || !task_.trailers) return add(net::kLastChunk);
  net::HeadWriter writer{task_.trailer_buffer};
  writer.last_chunk();
  for (const HeaderView& trailer : trailers) writer.header(trailer.name, trailer.value);
  const Result<std::string_view> written = writer.finish();
  add(written ? *written : net::kLastChunk);
}

// Parses the read bytes, up to the size of one write. False: the body is malformed.
bool BodyPump::gather() noexcept {
  const std::size_t most = task_.chunked ? kChunks : 1;
  for (std::size_t runs = 0; runs < most && !finished_;) {
    const net::BodyPiece piece = task_.reader.feed(task_.window->bytes());
    if (piece.fault) {
      fault_ = piece.fault;
      return false;
    }
    if (task_.bytes_max > 0 && piece.data.size() > task_.bytes_max - bytes_) {
      fault_ = {.status = 413, .why = "the body is too large"};
      return false;
    }
    task_.window->begin += piece.consumed;
    if (!piece.data.empty()) ++runs;
    add_data(piece.data);
    if (piece.done) add_end();
    if (piece.consumed == 0) break;
  }
  return true;
}

net::IoResult BodyPump::flush() noexcept {
  while (first_ < count_) {
    const net::IoResult result =
        task_.to->write(std::span{parts_}.subspan(first_, count_ - first_));
    if (!result.is_done()) return result;
    sent_ += result.bytes;
    moved_ += result.bytes;
    std::size_t left = result.bytes;
    while (first_ < count_ && left >= parts_[first_].iov_len) left -= parts_[first_++].iov_len;
    if (first_ == count_) break;
    parts_[first_].iov_base = static_cast<char*>(parts_[first_].iov_base) + left;
    parts_[first_].iov_len -= left;
  }
  first_ = count_ = chunks_ = 0;
  return net::IoResult::done();
}

BodyPump::Progress BodyPump::pump() noexcept {
  Window& window = *task_.window;
  std::size_t read = 0;
  while (true) {
    // The headers go out with the first bytes of the body, if those are there.
    const bool only_head = count_ == 1 && first_ == 0 && sent_ == 0 && !finished_;
    if (only_head && (window.begin < window.end || task_.reader.is_done()) && !gather()) {
      return Progress::source_wrong;
    }
    if (first_ < count_) {
      const net::IoResult result = flush();
      if (result.is_blocked()) return Progress::waiting;
      if (!result.is_done()) return Progress::sink_failed;
    }
    if (finished_) return Progress::done;
    if ((window.begin < window.end || task_.reader.is_done()) && !gather()) {
      return Progress::source_wrong;
    }
    if (count_ > 0 || finished_) continue;

    if (window.begin == window.end) window.begin = window.end = window.floor;
    if (window.room().empty()) window.compact();
    if (window.room().empty()) {
      // Trailers, which must be in the buffer as a whole, after headers that leave them no room.
      fault_ = {.status = 431, .why = "the trailers are too long"};
      return Progress::source_wrong;
    }
    if (!task_.from->can_read()) return Progress::waiting;
    if (read >= kBytesPerTurn) return Progress::paused;
    const net::IoResult result = task_.from->read(window.room());
    if (result.is_blocked()) return Progress::waiting;
    if (result.is_closed()) {
      if (task_.reader.end_of_input()) return Progress::source_ended;
      add_end();
      continue;
    }
    if (!result.is_done()) return Progress::source_ended;
    window.end += result.bytes;
    moved_ += result.bytes;
    read += result.bytes;
  }
}

}  // namespace sluice::gateway
