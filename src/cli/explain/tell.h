// An explanation, for people or for programs.
#pragma once

#include "cli/explain/explained_request.h"
#include "cli/explain/story.h"
#include "cli/terminal.h"
#include "engine/op.h"

#include <cstdint>

namespace sluice::cli {

// The request was sent `repeat` times, and this is the last.
void tell(const ExplainedRequest& request, const Story& story, const engine::Op& op,
          std::uint32_t repeat, Output& output);
void tell_json(const ExplainedRequest& request, const Story& story, const engine::Op& op,
               Output& output);

}  // namespace sluice::cli
