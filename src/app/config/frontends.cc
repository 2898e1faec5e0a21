// A new front end is a folder below src/frontend and two lines here. This file has nothing else: a
// test links another one in its place, with a front end of its own.
#include "app/config/frontends.h"

#include "frontend/admin/admin_frontend.h"
#include "frontend/gateway/gateway_frontend.h"

#include <array>

namespace sluice::app {

std::span<const frontend::FrontendKind* const> frontends() {
  static const std::array kAll{
      &gateway::kind(),
      &admin::kind(),
  };
  return kAll;
}

}  // namespace sluice::app
