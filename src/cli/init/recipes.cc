#include "cli/init/recipes.h"

namespace sluice::cli {

std::span<const Recipe> recipes() {
  static const std::vector<Recipe> kRecipes{
      {.name = "login",
       .summary = "a login: failed attempts by address and by account, with blocks",
       .keys = {},
       .trials = {"sluice explain 'POST /login' -c {file} --ip 192.0.2.1",
                  "sluice explain 'POST /login' -c {file} --ip 192.0.2.1 --repeat 7"}},
      {.name = "public-api",
       .summary = "a public API: anonymous clients by address, API keys by plan",
       .keys = {{"demo-free", "free"}, {"demo-paid", "paid"}},
       .trials = {"sluice explain 'GET /v1/items' -c {file} --ip 192.0.2.1",
                  "sluice explain 'GET /v1/items' -c {file} -H 'x-api-key: KEY'"}},
      {.name = "plans",
       .summary = "free and paid plans by API key, with a rate, a daily quota and exports at once",
       .keys = {{"demo-free", "free"}, {"demo-paid", "paid"}},
       .trials = {"sluice explain 'POST /v1/items' -c {file} -H 'x-api-key: KEY'",
                  "sluice explain 'GET /v1/items' -c {file}"}},
      {.name = "behind-nginx",
       .summary = "limits by client address behind a reverse proxy",
       .keys = {},
       .trials = {"sluice explain / -c {file} --ip 127.0.0.1 -H 'X-Forwarded-For: 203.0.113.7'",
                  "sluice explain / -c {file} --ip 192.0.2.66 -H 'X-Forwarded-For: 203.0.113.7'"}}};
  return kRecipes;
}

}  // namespace sluice::cli
