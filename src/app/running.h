// The parts of a server that does its work, from the innermost out.
//
// Made by the server, one after another; until then they are null. What is changed in them while
// they run is the reload's affair.
#pragma once

#include "app/admin_listener.h"
#include "app/engine_room.h"
#include "app/rule_feed.h"
#include "app/server_facts.h"
#include "app/server_worker.h"
#include "frontend/request_meters.h"
#include "metrics/registry.h"

#include <memory>
#include <vector>

namespace sluice::app {

struct Running {
  std::unique_ptr<metrics::Registry> registry;
  std::unique_ptr<const frontend::RequestMeters> meters;
  std::unique_ptr<ServerFacts> facts;
  std::unique_ptr<EngineRoom> room;
  std::vector<std::unique_ptr<ServerWorker>> workers;
  std::unique_ptr<AdminListener> admin;  // null: it is off
  bool admin_needs_token = false;        // somebody from elsewhere can reach it
  std::unique_ptr<RuleFeed> feed;        // null: rules are in the file itself
};

}  // namespace sluice::app
