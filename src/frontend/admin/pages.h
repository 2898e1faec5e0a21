// The pages of the admin listener.
#pragma once

#include "frontend/admin/routes.h"
#include "frontend/server_view.h"

namespace sluice::admin {

// The view outlives the routes, and these do not move.
void add_pages(Routes& routes, frontend::ServerView& view);

}  // namespace sluice::admin
