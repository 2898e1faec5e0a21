#include "config/yaml_mistakes.h"

#include <array>
#include <string>

namespace sluice::config {
namespace {

struct Translation {
  std::string_view theirs;  // how the library's message begins
  std::string_view message;
  std::string_view remedy;
};

constexpr std::array kTranslations{
    Translation{"illegal tab", "a tab cannot indent a line", "indent with spaces"},
    Translation{"illegal map value", "a ':' is not expected here",
                "check the indentation, and put text that contains ': ' in quotes"},
    Translation{"illegal map key", "a key is not expected here", "check the indentation"},
    Translation{"illegal block entry", "a '- ' is not expected here",
                "begin the list on a line of its own"},
    Translation{"illegal flow end", "a closing bracket has no opening one", "remove it"},
    Translation{"end of sequence flow not found", "a list that begins with '[' does not end",
                "add ']', and put text with brackets or commas in quotes"},
    Translation{"end of map flow not found", "a map that begins with '{' does not end",
                "add '}', and put text with braces or commas in quotes"},
    Translation{"end of map not found", "this is neither a new key nor part of the value before it",
                "check the indentation, and put the whole text in quotes"},
    Translation{"end of sequence not found",
                "this is neither a new item nor part of the one before", "check the indentation"},
    Translation{"unknown token", "no text can begin with this character", "put it in quotes"},
    Translation{"unknown escape character", "there is no such escape in double quotes",
                "write \\\\ for a backslash, or use single quotes"},
    Translation{"bad character found while scanning hex", "the escape lacks hexadecimal digits",
                "write \\\\ for a backslash, or use single quotes"},
    Translation{"invalid unicode", "the escape names no character", "write the character itself"},
    Translation{"illegal EOF in scalar", "a quote is opened and never closed",
                "add the closing quote"},
    Translation{"illegal document indicator", "a quote is still open where the document ends",
                "add the closing quote"},
    Translation{"the referenced anchor is not defined", "aliases are not supported",
                "write the value out, or put text that begins with '*' in quotes"},
    Translation{"alias not found", "aliases are not supported",
                "put text that begins with '*' in quotes"},
    Translation{"illegal character found while scanning alias", "aliases are not supported",
                "put text that begins with '*' in quotes"},
    Translation{"anchor not found", "anchors are not supported",
                "put text that begins with '&' in quotes"},
    Translation{"illegal character found while scanning anchor", "anchors are not supported",
                "put text that begins with '&' in quotes"},
    Translation{"unexpected character in block scalar", "nothing may follow '|' or '>'",
                "begin the text on the next line"},
};

}  // namespace

Diagnostic explain_yaml_mistake(std::string_view library_message) {
  for (const Translation& known : kTranslations) {
    if (library_message.starts_with(known.theirs)) {
      return {std::string{known.message}, std::string{known.remedy}};
    }
  }
  return {"this is not YAML: " + std::string{library_message}, {}};
}

}  // namespace sluice::config
