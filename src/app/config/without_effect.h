// What a configuration says without any effect: rules that no request reaches, values that are
// never known, keys for parts that are not there. Each is a warning at its place, with why and what
// to do about it.
#pragma once

#include "app/config/configuration.h"
#include "config/diagnostics.h"

namespace sluice::app {

// Without a listener the rules may be for a program that asks the library: what such a program can
// bring along (a domain, descriptors, an identity) is not warned of then.
void warn_of_no_effect(const Configuration& configuration, config::Diagnostics& diagnostics);
// Of these, what depends on the rules: for rules that are replaced while all else stays.
void warn_of_rules_without_effect(const Configuration& configuration,
                                  config::Diagnostics& diagnostics);

}  // namespace sluice::app
