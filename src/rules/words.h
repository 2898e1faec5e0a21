// The words of the rule language that choose among a few values, each with its meaning.
//
// One table per choice: the grammar offers its words, the parser looks them up, and printed rules
// use the same words.
#pragma once

#include "rules/rule.h"
#include <sluice/limit.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::rules {

template <class Enum>
using Word = std::pair<std::string_view, Enum>;

inline constexpr std::array kOnMissingWords{
    Word<OnMissing>{"ip", OnMissing::ip}, Word<OnMissing>{"skip", OnMissing::skip},
    Word<OnMissing>{"shared", OnMissing::shared}, Word<OnMissing>{"reject", OnMissing::reject}};

inline constexpr std::array kAlgorithmWords{
    Word<Algorithm>{"token_bucket", Algorithm::token_bucket},
    Word<Algorithm>{"leaky_bucket", Algorithm::leaky_bucket},
    Word<Algorithm>{"gcra", Algorithm::gcra},
    Word<Algorithm>{"fixed_window", Algorithm::fixed_window},
    Word<Algorithm>{"sliding_log", Algorithm::sliding_log},
    Word<Algorithm>{"sliding_counter", Algorithm::sliding_counter},
    Word<Algorithm>{"sliding_buckets", Algorithm::sliding_buckets},
    Word<Algorithm>{"concurrency", Algorithm::concurrency}};

inline constexpr std::array kRefillWords{Word<Refill>{"continuous", Refill::continuous},
                                         Word<Refill>{"interval", Refill::interval}};

inline constexpr std::array kAlignWords{Word<Align>{"epoch", Align::epoch},
                                        Word<Align>{"calendar", Align::calendar},
                                        Word<Align>{"first_request", Align::first_request}};

inline constexpr std::array kEscapedSlashesWords{
    Word<identity::EscapedSlashes>{"reject", identity::EscapedSlashes::reject},
    Word<identity::EscapedSlashes>{"decode", identity::EscapedSlashes::decode},
    Word<identity::EscapedSlashes>{"keep", identity::EscapedSlashes::keep}};

// `queue` is written as a map, since it needs a number.
inline constexpr std::array kActionWords{Word<Action::Kind>{"reject", Action::Kind::reject},
                                         Word<Action::Kind>{"drop", Action::Kind::drop},
                                         Word<Action::Kind>{"shadow", Action::Kind::shadow}};

inline constexpr std::array kOnChangeWords{Word<OnChange>{"keep", OnChange::keep},
                                           Word<OnChange>{"proportional", OnChange::proportional},
                                           Word<OnChange>{"reset", OnChange::reset}};

inline constexpr std::array kOnTableFullWords{
    Word<OnTableFull>{"approximate", OnTableFull::approximate},
    Word<OnTableFull>{"allow", OnTableFull::allow},
    Word<OnTableFull>{"reject", OnTableFull::reject}};

inline constexpr std::array kModeWords{
    Word<Mode>{"auto", Mode::automatic},      Word<Mode>{"local", Mode::local},
    Word<Mode>{"exact", Mode::exact},         Word<Mode>{"lease", Mode::lease},
    Word<Mode>{"writeback", Mode::writeback}, Word<Mode>{"owner", Mode::owner},
    Word<Mode>{"broadcast", Mode::broadcast}, Word<Mode>{"gossip", Mode::gossip},
    Word<Mode>{"leader", Mode::leader},       Word<Mode>{"deny_list", Mode::deny_list}};

inline constexpr std::array kOnFailureWords{Word<OnFailure>{"share", OnFailure::share},
                                            Word<OnFailure>{"closed", OnFailure::closed},
                                            Word<OnFailure>{"open", OnFailure::open}};

inline constexpr std::array kUnmatchedWords{Word<Unmatched>{"allow", Unmatched::allow},
                                            Word<Unmatched>{"reject", Unmatched::reject}};

inline constexpr std::array kWhenWords{Word<bool>{"request", false}, Word<bool>{"after", true}};

// gRPC's names of its status codes.
inline constexpr std::array kGrpcWords{Word<std::uint8_t>{"OK", 0},
                                       Word<std::uint8_t>{"CANCELLED", 1},
                                       Word<std::uint8_t>{"UNKNOWN", 2},
                                       Word<std::uint8_t>{"INVALID_ARGUMENT", 3},
                                       Word<std::uint8_t>{"DEADLINE_EXCEEDED", 4},
                                       Word<std::uint8_t>{"NOT_FOUND", 5},
                                       Word<std::uint8_t>{"ALREADY_EXISTS", 6},
                                       Word<std::uint8_t>{"PERMISSION_DENIED", 7},
                                       Word<std::uint8_t>{"RESOURCE_EXHAUSTED", 8},
                                       Word<std::uint8_t>{"FAILED_PRECONDITION", 9},
                                       Word<std::uint8_t>{"ABORTED", 10},
                                       Word<std::uint8_t>{"OUT_OF_RANGE", 11},
                                       Word<std::uint8_t>{"UNIMPLEMENTED", 12},
                                       Word<std::uint8_t>{"INTERNAL", 13},
                                       Word<std::uint8_t>{"UNAVAILABLE", 14},
                                       Word<std::uint8_t>{"DATA_LOSS", 15},
                                       Word<std::uint8_t>{"UNAUTHENTICATED", 16}};

template <class Words>
[[nodiscard]] std::vector<std::string_view> words_of(const Words& words) {
  std::vector<std::string_view> texts;
  for (const auto& [text, value] : words) texts.push_back(text);
  return texts;
}

// The meaning of a word; the first of the table for a word that is not in it, which a checked
// document does not contain.
template <class Words>
[[nodiscard]] constexpr auto meaning_of(const Words& words, std::string_view text) noexcept {
  for (const auto& [word, value] : words) {
    if (word == text) return value;
  }
  return words.front().second;
}

template <class Words, class Enum>
[[nodiscard]] constexpr std::string_view spelling_of(const Words& words, Enum value) noexcept {
  for (const auto& [word, meaning] : words) {
    if (meaning == value) return word;
  }
  return {};
}

}  // namespace sluice::rules
