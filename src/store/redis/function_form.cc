#include "store/redis/function_form.h"

#include <algorithm>

namespace sluice::store {
namespace {

bool says(std::string_view text, std::string_view what) noexcept {
  return text.find(what) != std::string_view::npos;
}

// By the user's rights, or by a server that does not know the command.
bool is_forbidden(std::string_view text) noexcept {
  return text.starts_with("NOPERM") || says(text, "unknown command") ||
         says(text, "nknown subcommand");
}

}  // namespace

std::array<std::string_view, 2> FunctionForm::prefix() const noexcept {
  switch (rung_) {
    case Rung::function: return {"FCALL", library_->name};
    case Rung::script: return {"EVALSHA", {digest_.data(), digest_.size()}};
    case Rung::text: break;
  }
  return {"EVAL", library_->script};
}

FunctionForm::Cause FunctionForm::error(std::string_view text, std::uint8_t used) noexcept {
  const bool is_missing = says(text, "Function not found") || text.starts_with("NOSCRIPT");
  // A call of before may tell what is known since.
  if (used != rung()) return is_missing || is_forbidden(text) ? Cause::forbidden : Cause::other;
  if (is_missing) return rung_ == Rung::text ? Cause::other : Cause::missing;
  if (!is_forbidden(text) || rung_ == Rung::text) return Cause::other;
  step_down();
  return rung_ == Rung::script ? Cause::missing : Cause::forbidden;
}

void FunctionForm::step_down() noexcept {
  rung_ = rung_ == Rung::function ? Rung::script : Rung::text;
}

std::span<const std::string_view> FunctionForm::begin_loading() noexcept {
  if (rung_ == Rung::text) return {};
  is_loading_ = true;
  if (rung_ == Rung::function) {
    command_ = {"FUNCTION", "LOAD", library_->library};
  } else {
    command_ = {"SCRIPT", "LOAD", library_->script};
  }
  return command_;
}

FunctionForm::Loaded FunctionForm::loaded(std::string_view digest) noexcept {
  is_loading_ = false;
  if (rung_ != Rung::script) return Loaded::done;
  if (digest.size() != digest_.size()) return Loaded::failed;
  std::ranges::copy(digest, digest_.begin());
  return Loaded::done;
}

// Another process may have been faster.
FunctionForm::Loaded FunctionForm::load_failed(std::string_view error) noexcept {
  is_loading_ = false;
  if (rung_ == Rung::function && says(error, "already exists")) return Loaded::done;
  if (!is_forbidden(error)) return Loaded::failed;
  step_down();
  return rung_ == Rung::text ? Loaded::done : Loaded::again;
}

}  // namespace sluice::store
