// Configuration without effect: rules that no request reaches, values that are never known, keys
// for parts that are absent. Each is a warning at its place, with the reason and the remedy.
#pragma once

#include "app/config/configuration.h"
#include "config/diagnostics.h"

namespace sluice::app {

// Without a listener the rules may be for a program that embeds the library: then values that such
// a program can provide (a domain, descriptors, an identity) cause no warning.
void warn_of_no_effect(const Configuration& configuration, config::Diagnostics& diagnostics);
// Only the warnings that depend on the rules: for a reload of the rules alone.
void warn_of_rules_without_effect(const Configuration& configuration,
                                  config::Diagnostics& diagnostics);

}  // namespace sluice::app
