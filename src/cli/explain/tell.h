// An explanation, for people or for programs.
#pragma once

#include "cli/explain/explained_request.h"
#include "cli/explain/story.h"
#include "cli/terminal.h"
#include "engine/op.h"

namespace sluice::cli {

void tell(const ExplainedRequest& request, const Story& story, const engine::Op& op,
          Output& output);
void tell_json(const ExplainedRequest& request, const Story& story, const engine::Op& op,
               Output& output);

}  // namespace sluice::cli
