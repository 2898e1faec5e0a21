#include "config/grammar.h"

#include "base/duration.h"
#include "base/text.h"
#include "config/formats.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace sluice::config {
namespace {

Shape only(Form form) {
  Shape shape;
  shape.forms.push_back(std::move(form));
  return shape;
}

void collect(const Shape& shape, std::vector<const Section*>& found) {
  for (const Form& form : shape.forms) {
    if (form.items) collect(*form.items, found);
    if (form.section == nullptr) continue;
    const Section& section = form.section();
    if (std::find(found.begin(), found.end(), &section) != found.end()) continue;
    found.push_back(&section);
    for (const Key& key : section.keys) collect(key.shape, found);
    if (section.others) collect(section.others->shape, found);
  }
}

}  // namespace

Shape text() { return only({.type = Form::Type::text}); }

Shape text(const Format& format) { return only({.type = Form::Type::text, .format = &format}); }

Shape word(std::vector<std::string_view> words) {
  return only({.type = Form::Type::word, .words = std::move(words)});
}

Shape flag() { return only({.type = Form::Type::flag}); }

Shape number(std::uint64_t min, std::uint64_t max) {
  return only({.type = Form::Type::number, .min = min, .max = max});
}

Shape decimal(std::uint64_t min, std::uint64_t max) {
  return only({.type = Form::Type::decimal, .min = min, .max = max});
}

Shape list_of(const Shape& items) {
  return only({.type = Form::Type::list, .items = std::make_shared<const Shape>(items)});
}

Shape one_or_list(const Shape& item) { return item | list_of(item); }

Shape any_list_of(const Shape& items) {
  Shape shape = list_of(items);
  shape.forms.front().may_be_empty = true;
  return shape;
}

Shape map_of(const Section& (*section)()) {
  return only({.type = Form::Type::map, .section = section});
}

Shape anything() { return only({.type = Form::Type::anything}); }

Shape operator|(Shape first, const Shape& second) {
  first.forms.insert(first.forms.end(), second.forms.begin(), second.forms.end());
  return first;
}

const Key* Section::find(std::string_view key) const noexcept {
  for (const Key& known : keys) {
    if (known.name == key) return &known;
  }
  return nullptr;
}

const Key* Section::find_formerly(std::string_view key) const noexcept {
  for (const Key& known : keys) {
    if (std::find(known.formerly.begin(), known.formerly.end(), key) != known.formerly.end()) {
      return &known;
    }
  }
  return nullptr;
}

const Node* Reader::find(std::string_view key) const {
  assert(section_.find(key) != nullptr && "the parser asks for a key that the grammar lacks");
  if (checked_.watched() != nullptr) {
    checked_.watched()->insert(std::string{section_.name} + "." + std::string{key});
  }
  const Node* value = map_.find(key);
  return value != nullptr && checked_.good(*value) ? value : nullptr;
}

std::string_view Reader::text(std::string_view key, std::string_view fallback) const {
  const Node* value = find(key);
  return value == nullptr ? fallback : std::string_view{value->text};
}

bool Reader::flag(std::string_view key, bool fallback) const {
  const Node* value = find(key);
  return value == nullptr ? fallback : value->text == "true";
}

std::optional<std::uint64_t> Reader::number(std::string_view key) const {
  const Node* value = find(key);
  if (value == nullptr) return std::nullopt;
  return number_of(*value);
}

std::vector<const Node*> Reader::list(std::string_view key) const {
  const Node* value = find(key);
  return value == nullptr ? std::vector<const Node*>{} : items_of(*value, checked_);
}

void Reader::take(std::string_view key, Nanos& into) const {
  if (const Node* value = find(key)) into = parse_duration(value->text).value();
}

void Reader::take_size(std::string_view key, std::size_t& into) const {
  if (const Node* value = find(key)) into = parse_size(value->text).value();
}

std::uint64_t number_of(const Node& node) noexcept { return parse_number(node.text).value_or(0); }

std::vector<const Node*> items_of(const Node& node, const Checked& checked) {
  if (!node.is_list()) return {&node};
  std::vector<const Node*> good;
  for (const Node& item : node.items()) {
    if (checked.good(item)) good.push_back(&item);
  }
  return good;
}

std::vector<const Section*> sections_of(const Shape& shape) {
  std::vector<const Section*> found;
  collect(shape, found);
  return found;
}

}  // namespace sluice::config
