#include "config/reference.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::config {
namespace {

std::string form_text(const Form& form) {
  switch (form.type) {
    case Form::Type::text:
      return form.format == nullptr ? std::string{"text"} : std::string{form.format->name};
    case Form::Type::word: {
      std::string words;
      for (const std::string_view one : form.words) {
        words += fmt::format("{}`{}`", words.empty() ? "" : ", ", one);
      }
      return words;
    }
    case Form::Type::flag: return "`true`, `false`";
    case Form::Type::number: return fmt::format("number ({} to {})", form.min, form.max);
    case Form::Type::decimal:
      return fmt::format("decimal ({} to {})", format_thousandths(form.min),
                         format_thousandths(form.max));
    case Form::Type::list: return "list of " + shape_text(*form.items);
    case Form::Type::map: return fmt::format("[{0}](#{0})", form.section().name);
    case Form::Type::anything: return "anything";
  }
  return {};
}

// A pipe would end the cell of a table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string example_text(const Key& key) {
  std::string text;
  for (const std::string_view example : key.examples) {
    text += fmt::format("{}`{}: {}`", text.empty() ? " Example: " : ", ", key.name, example);
  }
  return text.empty() ? text : text + ".";
}

std::string row(const Key& key) {
  const std::string fallback = key.required           ? "required"
                               : key.fallback.empty() ? ""
                                                      : fmt::format("`{}`", key.fallback);
  return fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(shape_text(key.shape)),
                     cell(fallback), cell(std::string{key.meaning} + example_text(key)));
}

std::string set_text(std::string_view how_many, const std::vector<std::string_view>& keys) {
  std::string text;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    text += fmt::format("{}`{}`", i == 0 ? "" : i + 1 == keys.size() ? " and " : ", ", keys[i]);
  }
  return fmt::format("{} of {}.\n", how_many, text);
}

std::string section_text(const Section& section) {
  std::string text = fmt::format("## {}\n\n{}\n\n", section.name, section.meaning);
  text += "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const Key& key : section.keys) text += row(key);
  if (section.others) {
    text += fmt::format("| {} | {} | | {} |\n", section.others->what,
                        cell(shape_text(section.others->shape)), cell(section.others->meaning));
  }
  text += "\n";
  for (const auto& keys : section.exactly_one) text += set_text("Exactly one", keys);
  for (const auto& keys : section.at_least_one) text += set_text("At least one", keys);
  for (const auto& [key, needed] : section.needs) {
    text += fmt::format("`{}` needs `{}`.\n", key, needed);
  }
  if (!text.ends_with("\n\n")) text += "\n";
  return text;
}

}  // namespace

// "RATE, number (1 to 9), or list of these": a list often holds what could stand alone.
std::string shape_text(const Shape& shape) {
  std::string text;
  for (std::size_t i = 0; i < shape.forms.size(); ++i) {
    const Form& form = shape.forms[i];
    const bool of_these =
        form.items && form.items->forms.size() > 1 && form.items->forms.size() == i;
    if (i > 0) text += i + 1 == shape.forms.size() ? ", or " : ", ";
    text += of_these ? std::string{"list of these"} : form_text(form);
  }
  return text;
}

std::string reference_markdown(const Shape& root) {
  std::string text;
  for (const Section* section : sections_of(root)) text += section_text(*section);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace sluice::config
