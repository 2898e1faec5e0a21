#include "rules/per_text.h"

#include <fmt/format.h>

namespace sluice::rules {

std::string per_text(const Per& per) {
  using Kind = Per::Kind;
  switch (per.kind) {
    case Kind::user: return "user";
    case Kind::api_key: return "api_key";
    case Kind::tenant: return "tenant";
    case Kind::ip:
      if (per.v6_bits != 64) return fmt::format("ip/{}/{}", per.v4_bits, per.v6_bits);
      return per.v4_bits != 32 ? fmt::format("ip/{}", per.v4_bits) : "ip";
    case Kind::country: return "country";
    case Kind::asn: return "asn";
    case Kind::method: return "method";
    case Kind::route: return "route";
    case Kind::path: return "path." + per.name;
    case Kind::header: return "header." + per.name;
    case Kind::query: return "query." + per.name;
    case Kind::claim: return "claim." + per.name;
    case Kind::attribute: return "attribute." + per.name;
    case Kind::descriptor: return "descriptor." + per.name;
  }
  return {};
}

}  // namespace sluice::rules
