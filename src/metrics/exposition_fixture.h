// For tests: reads what is exposed, by the letter of the two formats, and refuses all else.
//
// Written from the descriptions of the formats, not from the code that writes them.
#pragma once

#include "metrics/exposition.h"

#include <cctype>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::metrics::fixture {

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct ParsedFamily {
  std::string help;
  std::string type;
  std::string unit;
  std::vector<Sample> samples;
};

using Page = std::map<std::string, ParsedFamily>;

class PageParser {
 public:
  PageParser(std::string_view text, Exposition form) : rest_(text), form_(form) {}

  // Throws what is wrong with it.
  Page parse() {
    if (!rest_.empty() && rest_.back() != '\n') fail("the last line does not end");
    while (!rest_.empty()) {
      const std::string_view line = rest_.substr(0, rest_.find('\n'));
      rest_.remove_prefix(line.size() + 1);
      if (is_over_) fail("something behind the end");
      if (line.starts_with("# ")) {
        parse_comment(line.substr(2));
      } else {
        parse_sample(line);
      }
    }
    if (form_ == Exposition::open_metrics && !is_over_) fail("there is no end");
    return page_;
  }

 private:
  [[noreturn]] static void fail(const std::string& what) { throw std::runtime_error{what}; }

  static bool is_name(std::string_view text) {
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
    for (const char c : text) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
    }
    return true;
  }

  static std::string unescaped(std::string_view text, bool quotes) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"' && quotes) fail("a bare quote");
      if (text[i] != '\\') {
        plain += text[i];
        continue;
      }
      if (++i == text.size()) fail("a backslash at the end");
      if (text[i] == 'n') {
        plain += '\n';
      } else if (text[i] == '\\' || (text[i] == '"' && quotes)) {
        plain += text[i];
      } else {
        fail("an unknown escape");
      }
    }
    return plain;
  }

  void parse_comment(std::string_view text) {
    if (text == "EOF" && form_ == Exposition::open_metrics) {
      is_over_ = true;
      return;
    }
    const std::size_t first = text.find(' ');
    const std::size_t second = text.find(' ', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) fail("half a comment");
    const std::string_view what = text.substr(0, first);
    const std::string name{text.substr(first + 1, second - first - 1)};
    const std::string_view value = text.substr(second + 1);
    if (!is_name(name)) fail("a family without a name");
    if (name != current_) {
      if (page_.contains(name)) fail(name + " stands in two places");
      current_ = name;
    }
    ParsedFamily& family = page_[name];
    if (!family.samples.empty()) fail("a comment behind samples");
    if (what == "HELP" && family.help.empty()) {
      family.help = unescaped(value, form_ == Exposition::open_metrics);
    } else if (what == "TYPE" && family.type.empty()) {
      family.type = value;
    } else if (what == "UNIT" && form_ == Exposition::open_metrics && family.unit.empty()) {
      family.unit = value;
      if (!name.ends_with("_" + family.unit)) fail(name + " does not end in its unit");
    } else {
      fail("an unknown comment");
    }
  }

  void parse_sample(std::string_view line) {
    Sample sample;
    std::size_t at = line.find_first_of("{ ");
    if (at == std::string_view::npos) fail("half a sample");
    sample.name = line.substr(0, at);
    if (!is_name(sample.name)) fail("a sample without a name");
    if (line[at] == '{') at = parse_labels(line, at + 1, sample);
    if (line[at] != ' ') fail("no space before the value");
    sample.value = number(line.substr(at + 1));
    ParsedFamily& family = family_of(sample.name);
    if (!seen_.insert({sample.name, sample.labels}).second) fail(sample.name + " is there twice");
    family.samples.push_back(std::move(sample));
  }

  static std::size_t parse_labels(std::string_view line, std::size_t at, Sample& sample) {
    while (true) {
      const std::size_t equals = line.find("=\"", at);
      if (equals == std::string_view::npos) fail("a label without a value");
      const std::string name{line.substr(at, equals - at)};
      if (!is_name(name)) fail("a label without a name");
      std::size_t end = equals + 2;
      while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2U : 1U;
      if (end >= line.size()) fail("a value that does not end");
      const std::string value = unescaped(line.substr(equals + 2, end - equals - 2), true);
      if (!sample.labels.emplace(name, value).second) fail("a label twice");
      at = end + 1;
      if (at < line.size() && line[at] == ',') {
        ++at;
        continue;
      }
      if (at >= line.size() || line[at] != '}') fail("labels that do not end");
      return at + 1;
    }
  }

  static double number(std::string_view text) {
    const std::string copy{text};
    if (copy == "+Inf" || copy == "-Inf" || copy == "NaN") return std::atof(copy.c_str());
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    if (copy.empty() || *end != '\0' || copy.find_first_of("xXiInN") != std::string::npos) {
      fail("'" + copy + "' is no number");
    }
    return value;
  }

  ParsedFamily& family_of(const std::string& sample) {
    const auto found = page_.find(current_);
    if (found == page_.end() || found->second.type.empty()) fail("a sample before its type");
    std::vector<std::string> suffixes{""};
    const std::string& type = found->second.type;
    const bool open = form_ == Exposition::open_metrics;
    if (type == "histogram") suffixes = {"_bucket", "_sum", "_count"};
    if (type == "counter" && open) suffixes = {"_total"};
    if (type == "info" && open) suffixes = {"_info"};
    if (type == "info" && !open) fail("a type that this form does not know");
    for (const std::string& suffix : suffixes) {
      if (sample == current_ + suffix) return found->second;
    }
    fail(sample + " is no sample of " + current_);
  }

  std::string_view rest_;
  Exposition form_;
  Page page_;
  std::string current_;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen_;
  bool is_over_ = false;
};

inline Page parse_page(std::string_view text, Exposition form) {
  return PageParser{text, form}.parse();
}

}  // namespace sluice::metrics::fixture
