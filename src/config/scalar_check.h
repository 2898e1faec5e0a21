// Whether one scalar has one of the forms of a shape.
#pragma once

#include "config/grammar.h"
#include <sluice/diagnostic.h>

#include <optional>
#include <string>

namespace sluice::config {

// What is wrong with the scalar, or nothing. The shape has at least one form for scalars.
[[nodiscard]] std::optional<Diagnostic> check_scalar(const Node& scalar, const Shape& shape);

[[nodiscard]] constexpr bool is_scalar_form(const Form& form) noexcept {
  return form.type != Form::Type::list && form.type != Form::Type::map;
}

}  // namespace sluice::config
