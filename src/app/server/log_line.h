// Lines that the process logs about itself: each with its time and level.
//
//     2026-01-01T00:00:00.000Z warning app at 10.0.0.7:443: the server cannot be reached
//
// The journal of systemd keeps time and priority itself: it gets the priority as a prefix, as in
// sd-daemon(3), and the bare text. Pure, but for reaches_journal.
#pragma once

#include <sluice/time.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sluice::app {

enum class LogLevel : std::uint8_t { error, warning, info };
[[nodiscard]] std::string_view name_of(LogLevel level) noexcept;

// To the operator. Text without a final newline; each of its lines becomes one in the log.
using Say = std::function<void(LogLevel, std::string)>;

enum class LogForm : std::uint8_t { plain, journal };
// Every line of the text, with its newline.
[[nodiscard]] std::string log_lines(LogForm form, LogLevel level, WallTime now,
                                    std::string_view text);

// Whether the descriptor leads to the journal. `stream` is the value of JOURNAL_STREAM, null if not
// set: a device and an inode, since children of a service inherit it whatever they write to.
[[nodiscard]] bool reaches_journal(int descriptor, const char* stream);

}  // namespace sluice::app
