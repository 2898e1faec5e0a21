#include "app/config/without_effect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kGateway = R"(listen: {gateway: '127.0.0.1:0'}
upstreams: {app: {servers: ['127.0.0.1:1']}}
routes: [{upstream: app}]
)";

std::string told(const std::string& text) {
  config::Diagnostics diagnostics;
  (void)read_configuration(text, "sluice.yaml", diagnostics);
  EXPECT_TRUE(diagnostics.ok()) << diagnostics.text();
  return diagnostics.text();
}

// One rule of a gateway, in line 4.
std::string told_of(const std::string& rule, const std::string& more = "") {
  return told(std::string{kGateway} + "rules: [{name: r, " + rule + "}]\n" + more);
}

TEST(WithoutEffect, NothingIsSaidOfAGatewayInWhichAllHasAnEffect) {
  EXPECT_EQ(told_of("per: ip, limit: 5/1s"), "");
  EXPECT_EQ(told_of("per: [user, api_key, tenant, claim.a, attribute.b, country, asn],"
                    "match: {tier: gold, country: DE, authenticated: true},"
                    "limit: {rate: 5/1s, from: {claim: quota, max: 10}},"
                    "tiers: {by: client.tier, values: {gold: 9/1s}}",
                    "clients: {api_keys: {file: k}, jwt: {jwks_file: j, tier: t, tenant: u},"
                    " geo: {country_file: c, asn_file: a}, require_auth: true}\n"
                    "lists: {allow: [user=ann], deny: [ip=10.0.0.0/8]}\n"
                    "overrides: [{subject: tenant=acme, multiplier: 2}]\n"),
            "");
}

TEST(WithoutEffect, ARuleOfAnotherDomainIsReachedByNoListener) {
  const std::string text = told_of("domain: edge, per: ip, limit: 5/1s");
  EXPECT_THAT(text, HasSubstr("sluice.yaml:4:9: warning: rule 'r' has no effect: it is in the "
                              "domain 'edge', and the gateway asks the domain 'default' only"));
  EXPECT_THAT(text, HasSubstr("leave out 'domain'"));
  // A program that asks the library names the domain itself.
  EXPECT_EQ(told("rules: [{name: r, domain: edge, per: ip, limit: 5/1s}]\n"), "");
}

TEST(WithoutEffect, NoRequestToAGatewayHasADescriptor) {
  EXPECT_THAT(told_of("match: {descriptor: {tenant: gold}}, per: ip, limit: 5/1s"),
              HasSubstr("sluice.yaml:4:9: warning: rule 'r' never matches: it asks for "
                        "'descriptor', but requests to the gateway have no descriptors"));
  EXPECT_THAT(told_of("per: descriptor.tenant, limit: 5/1s"),
              HasSubstr("counts per descriptor.tenant, which is never known (requests to the "
                        "gateway have no descriptors): it counts by address instead"));
  EXPECT_THAT(told_of("per: descriptor.tenant, on_missing: skip, limit: 5/1s"),
              HasSubstr("it has no effect"));
  EXPECT_THAT(told_of("per: descriptor.tenant, on_missing: reject, limit: 5/1s"),
              HasSubstr("it rejects every request"));
  EXPECT_EQ(told("rules: [{name: r, per: descriptor.tenant, limit: 5/1s}]\n"), "");
}

TEST(WithoutEffect, KeysForNodesThatShareALimitAreToldOfWhereTheyStand) {
  const std::string text = told(
      "rules:\n  - name: r\n    limit: 5/1s\n    mode: gossip\n    tolerance: 5%\n"
      "    on_failure: share\n");
  for (const std::string where :
       {"4:11: warning: rule 'r': 'mode'", "5:16: warning: rule 'r': 'tolerance'",
        "6:17: warning: rule 'r': 'on_failure'"}) {
    EXPECT_THAT(text, HasSubstr("sluice.yaml:" + where + " has no effect: several nodes cannot"));
  }
  EXPECT_EQ(told("rules: [{name: r, limit: 5/1s, mode: local}]\n"), "");
}

TEST(WithoutEffect, NoListenerAsksTrees) {
  EXPECT_THAT(told("rules_from: {envoy: trees}\n"),
              HasSubstr("sluice.yaml:1:13: warning: no listener asks the trees in trees"));
}

TEST(WithoutEffect, ValuesThatAreNeverKnownAreNamed) {
  struct Case {
    const char* rule;
    const char* warning;
  };
  for (const Case& one :
       {Case{"match: {country: DE}", "never matches: it asks for 'country'"},
        Case{"match: {asn: 1}", "never matches: it asks for 'asn'"},
        Case{"match: {tier: gold}", "never matches: it asks for 'tier'"},
        Case{"match: {tenant: a}", "never matches: it asks for 'tenant'"},
        Case{"match: {attribute: {a: b}}", "never matches: it asks for 'attribute'"},
        Case{"match: {authenticated: true}", "never matches: it asks for 'authenticated: true'"},
        Case{"per: user", "counts per user, which is never known"},
        Case{"per: claim.plan", "counts per claim.plan, which is never known"},
        Case{"per: country", "clients.geo.country_file"},
        Case{"tiers: {by: client.tier, values: {gold: 9/1s}}", "'tiers' by client.tier has no"}}) {
    EXPECT_THAT(told_of(std::string{one.rule} + ", limit: 5/1s"), HasSubstr(one.warning));
  }
  EXPECT_EQ(told_of("match: {authenticated: false}, per: ip, limit: 5/1s"), "");
}

TEST(WithoutEffect, AnAmountThatIsNeverTakenIsToldOf) {
  const auto from = [](const char* where, const char* more = "") {
    return told_of(std::string{"per: ip, limit: {rate: 5/1s, from: {"} + where + ", max: 10}}",
                   more);
  };
  EXPECT_THAT(from("claim: quota"),
              HasSubstr("never taken from 'quota': no tokens are configured"));
  EXPECT_THAT(from("header: x-quota"), HasSubstr("a header counts only from a trusted proxy"));
  EXPECT_EQ(from("header: x-quota", "clients: {trusted_proxies: 10.0.0.0/8}\n"), "");
  EXPECT_EQ(from("header: x-quota", "clients: {trusted_hops: 1}\n"), "");
}

TEST(WithoutEffect, ListsAndOverridesOfWhatIsNeverProvenAreToldOf) {
  const std::string text = told_of("per: [ip], limit: 5/1s",
                                   "lists:\n  allow: [user=ann]\n  deny: [{subject: tenant=a}]\n"
                                   "overrides:\n  - {subject: api_key=k, multiplier: 2}\n");
  EXPECT_THAT(text, HasSubstr("sluice.yaml:6:11: warning: the entry of lists.allow for 'user=ann' "
                              "has no effect: no API keys, tokens or client certificates"));
  EXPECT_THAT(text, HasSubstr("sluice.yaml:7:10: warning: the entry of lists.deny for 'tenant=a'"));
  EXPECT_THAT(text, HasSubstr("sluice.yaml:9:5: warning: the override for 'api_key=k' has no eff"));
}

TEST(WithoutEffect, AnOverrideThatNoRuleCountsByIsToldOf) {
  const std::string keys = "clients: {api_keys: {file: k}}\n";
  EXPECT_THAT(
      told_of("per: ip, limit: 5/1s", keys + "overrides: [{subject: user=a, multiplier: 2}]\n"),
      HasSubstr("the override for 'user=a' has no effect: no rule counts per user"));
  EXPECT_EQ(
      told_of("per: user, limit: 5/1s", keys + "overrides: [{subject: user=a, multiplier: 2}]\n"),
      "");
}

TEST(WithoutEffect, ProofThatNobodyCanGiveIsToldOf) {
  EXPECT_THAT(told_of("per: ip, limit: 5/1s", "clients: {require_auth: true}\n"),
              HasSubstr("sluice.yaml:5:25: warning: every request is rejected with 401"));
}

TEST(WithoutEffect, WhatNoRequestReachesIsToldOf) {
  const std::string rules = "rules: [{name: r, per: ip, limit: 5/1s}]\n";
  EXPECT_THAT(told(rules + "upstreams: {app: {servers: [':1']}, old: {servers: [':2']}}\n"
                           "listen: {gateway: ':0'}\nroutes: [{upstream: app}]\n"),
              HasSubstr("sluice.yaml:2:37: warning: the upstream 'old' has no effect: no route"));
  const std::string text = told(rules +
                                "upstreams: {app: {servers: [':1']}}\n"
                                "routes: [{upstream: app}]\naccess_log: {}\n");
  EXPECT_THAT(text, HasSubstr("'upstreams' has no effect: no gateway listens"));
  EXPECT_THAT(text, HasSubstr("'routes' has no effect: no gateway listens"));
  EXPECT_THAT(text, HasSubstr("'access_log' has no effect: no gateway listens"));
  EXPECT_THAT(text, Not(HasSubstr("the upstream 'app'")));
}

}  // namespace
}  // namespace sluice::app
