#include "cli/replay/log_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>
#include <zlib.h>

namespace sluice::cli {
namespace {

constexpr std::size_t kPackedBytes = std::size_t{64} << 10U;
constexpr unsigned char kGzipFirst = 0x1f;
constexpr unsigned char kGzipSecond = 0x8b;

// Some bytes that were read already, then the rest.
class BytesAhead final : public ByteSource {
 public:
  BytesAhead(std::vector<char> ahead, std::unique_ptr<ByteSource> rest)
      : ahead_(std::move(ahead)), rest_(std::move(rest)) {}

  [[nodiscard]] Parsed<std::size_t> read(std::span<char> into) override {
    if (taken_ == ahead_.size()) return rest_->read(into);
    const std::size_t bytes = std::min(into.size(), ahead_.size() - taken_);
    std::memcpy(into.data(), ahead_.data() + taken_, bytes);
    taken_ += bytes;
    return bytes;
  }

 private:
  std::vector<char> ahead_;
  std::size_t taken_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

class GunzippedBytes final : public ByteSource {
 public:
  GunzippedBytes(std::unique_ptr<ByteSource> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)), buffer_(kPackedBytes) {
    constexpr int kOnlyGzip = 16;
    is_good_ = ::inflateInit2(&stream_, MAX_WBITS + kOnlyGzip) == Z_OK;
  }
  GunzippedBytes(const GunzippedBytes&) = delete;
  GunzippedBytes& operator=(const GunzippedBytes&) = delete;
  ~GunzippedBytes() override { ::inflateEnd(&stream_); }

  [[nodiscard]] Parsed<std::size_t> read(std::span<char> into) override {
    if (!is_good_) return mistake(fmt::format("{}: no memory to unpack it", name_));
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(into.size());
    while (stream_.avail_out == into.size()) {
      const Parsed<bool> more = has_packed();
      if (!more) return tl::unexpected(more.error());
      if (!*more && is_between_) return 0;
      if (!*more) {
        return mistake(fmt::format("{} is cut off: its compressed data ends too early", name_),
                       "copy it again, or unpack what is there by: gzip -dc");
      }
      if (Parsed<void> unpacked = unpack(); !unpacked) {
        return tl::unexpected(std::move(unpacked.error()));
      }
    }
    return into.size() - stream_.avail_out;
  }

 private:
  // Whether there is something to unpack; reads on if need be.
  [[nodiscard]] Parsed<bool> has_packed() {
    if (stream_.avail_in > 0) return true;
    const Parsed<std::size_t> got = packed_->read(buffer_);
    if (!got) return tl::unexpected(got.error());
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(*got);
    return *got > 0;
  }
  // One step. Behind a member there may be another one.
  [[nodiscard]] Parsed<void> unpack() {
    if (is_between_ && ::inflateReset(&stream_) != Z_OK) return damaged();
    is_between_ = false;
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      is_between_ = true;
      return {};
    }
    return result == Z_OK ? Parsed<void>{} : damaged();
  }
  [[nodiscard]] Parsed<void> damaged() const {
    return mistake(fmt::format("{} is damaged: {}", name_,
                               stream_.msg != nullptr ? stream_.msg : "it cannot be unpacked"),
                   "copy it again, or name another file");
  }

  std::unique_ptr<ByteSource> packed_;
  std::string name_;
  std::vector<char> buffer_;
  z_stream stream_{};
  bool is_good_ = false;
  bool is_between_ = true;  // two members, or before the first
};

}  // namespace

std::unique_ptr<ByteSource> gunzip(std::unique_ptr<ByteSource> packed, std::string name) {
  return std::make_unique<GunzippedBytes>(std::move(packed), std::move(name));
}

Parsed<LineReader> open_log_lines(const std::string& path) {
  const std::string name = path == "-" ? "standard input" : path;
  auto opened = open_bytes(path);
  if (!opened) return tl::unexpected(std::move(opened.error()));
  std::vector<char> first(2);
  std::size_t have = 0;
  while (have < first.size()) {
    const Parsed<std::size_t> got = (*opened)->read(std::span{first}.subspan(have));
    if (!got) return tl::unexpected(got.error());
    if (*got == 0) break;
    have += *got;
  }
  first.resize(have);
  const bool is_gzip = have == 2 && static_cast<unsigned char>(first[0]) == kGzipFirst &&
                       static_cast<unsigned char>(first[1]) == kGzipSecond;
  std::unique_ptr<ByteSource> bytes =
      std::make_unique<BytesAhead>(std::move(first), *std::move(opened));
  if (is_gzip) bytes = gunzip(std::move(bytes), name);
  return LineReader{std::move(bytes), name};
}

}  // namespace sluice::cli
