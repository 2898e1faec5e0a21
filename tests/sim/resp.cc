#include "sim/resp.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace sluice::sim {
namespace {

void append_number(std::string& to, char kind, std::int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  to += kind;
  to.append(digits, end);
  to += "\r\n";
}

void append_bulk(std::string& to, std::string_view text) {
  append_number(to, '$', static_cast<std::int64_t>(text.size()));
  to += text;
  to += "\r\n";
}

std::string_view take(std::string_view& bytes, std::size_t count) {
  if (count > bytes.size()) throw std::logic_error{"RESP: the bytes end within a message"};
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

std::string_view take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) throw std::logic_error{"RESP: a line does not end"};
  const std::string_view line = take(bytes, end);
  take(bytes, 2);
  return line;
}

std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) {
    throw std::logic_error{fmt::format("RESP: '{}' is no number", text)};
  }
  return number;
}

std::string_view take_bulk(std::string_view& bytes, std::int64_t size) {
  const std::string_view text = take(bytes, static_cast<std::size_t>(size));
  if (take(bytes, 2) != "\r\n") throw std::logic_error{"RESP: a string does not end"};
  return text;
}

}  // namespace

std::vector<std::int64_t> Reply::numbers() const {
  if (kind != Kind::array) throw std::logic_error{"not an array: " + described()};
  std::vector<std::int64_t> result;
  result.reserve(items.size());
  for (const Reply& item : items) {
    if (item.kind != Kind::integer) throw std::logic_error{"not a number: " + item.described()};
    result.push_back(item.integer);
  }
  return result;
}

std::string Reply::described() const {
  switch (kind) {
    case Kind::status: return "+" + text;
    case Kind::error: return "-" + text;
    case Kind::integer: return std::to_string(integer);
    case Kind::bulk: return '"' + text + '"';
    case Kind::nil: return "nil";
    case Kind::array: break;
  }
  std::string all = "[";
  for (const Reply& item : items) all += (all.size() > 1 ? " " : "") + item.described();
  return all + "]";
}

void append_command(std::string& to, Words words) {
  append_number(to, '*', static_cast<std::int64_t>(words.size()));
  for (const std::string_view word : words) append_bulk(to, word);
}

void append_reply(std::string& to, const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::status: to += '+' + reply.text + "\r\n"; return;
    case Reply::Kind::error: to += '-' + reply.text + "\r\n"; return;
    case Reply::Kind::integer: return append_number(to, ':', reply.integer);
    case Reply::Kind::bulk: return append_bulk(to, reply.text);
    case Reply::Kind::nil: to += "$-1\r\n"; return;
    case Reply::Kind::array:
      append_number(to, '*', static_cast<std::int64_t>(reply.items.size()));
      for (const Reply& item : reply.items) append_reply(to, item);
  }
}

std::vector<std::string_view> take_command(std::string_view& bytes) {
  if (take(bytes, 1) != "*") throw std::logic_error{"RESP: not a command"};
  std::vector<std::string_view> words(static_cast<std::size_t>(number_in(take_line(bytes))));
  for (std::string_view& word : words) {
    if (take(bytes, 1) != "$") throw std::logic_error{"RESP: not a command"};
    word = take_bulk(bytes, number_in(take_line(bytes)));
  }
  return words;
}

Reply take_reply(std::string_view& bytes) {
  const char kind = take(bytes, 1).front();
  const std::string_view line = take_line(bytes);
  switch (kind) {
    case '+': return Reply::status(line);
    case '-': return Reply::error(line);
    case ':': return Reply::number(number_in(line));
    case '$': {
      const std::int64_t size = number_in(line);
      return size < 0 ? Reply{} : Reply::bulk(take_bulk(bytes, size));
    }
    case '*': {
      Reply reply = Reply::array();
      const std::int64_t count = number_in(line);
      for (std::int64_t i = 0; i < count; ++i) reply.items.push_back(take_reply(bytes));
      return reply;
    }
    default: throw std::logic_error{fmt::format("RESP: a reply begins with '{}'", kind)};
  }
}

}  // namespace sluice::sim
