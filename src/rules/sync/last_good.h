// The last accepted rules on disk, for a start while their source is invalid or unreachable.
//
// One file, readable by its owner only: a few lines about the text, then the text. A digest over
// all of it finds damage, the name of the source tells whose rules they are. A file that is
// damaged, of another source or of another format is rejected with a message; the next accepted
// rules replace it. One thread.
#pragma once

#include <sluice/diagnostic.h>
#include <sluice/time.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::rules {

struct Kept {
  std::string text;
  std::string version;
  WallTime accepted;

  friend bool operator==(const Kept&, const Kept&) = default;
};

struct LastGoodPlace {
  std::string file;    // its folder is created if only the last part of that is missing
  std::string source;  // RuleSource::name()
  std::size_t bytes_max = std::size_t{16} << 20U;  // of the text
};

class LastGood {
 public:
  explicit LastGood(LastGoodPlace place);

  // After a crash at any moment the file has its former content, or this. `before_rename` is for
  // tests.
  [[nodiscard]] Parsed<void> keep(const Kept& kept,
                                  const std::function<void()>& before_rename = nullptr) const;

  // Nothing if no rules were ever kept.
  [[nodiscard]] Parsed<std::optional<Kept>> load() const;

  [[nodiscard]] const std::string& path() const noexcept { return place_.file; }

 private:
  const LastGoodPlace place_;
};

// The content of the file. Reading accepts exactly what writing produces.
[[nodiscard]] std::string last_good_file(std::string_view source, const Kept& kept);
[[nodiscard]] Parsed<Kept> parse_last_good(std::string_view file, std::string_view source,
                                           const std::string& path);

}  // namespace sluice::rules
