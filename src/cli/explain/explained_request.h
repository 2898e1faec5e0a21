// The request that `sluice explain` is asked about, as the command line has it.
#pragma once

#include "cli/explain/explain.h"
#include <sluice/address.h>
#include <sluice/diagnostic.h>
#include <sluice/request.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::cli {

struct ExplainedRequest {
  std::string method = "GET";
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::pair<std::string, std::string>> descriptor;
  IpAddress ip;
  std::string host;
  std::string domain;

  // Views into it, and into what they are made of.
  struct Views {
    std::vector<HeaderView> headers;
    std::vector<DescriptorEntry> descriptor;
  };
  [[nodiscard]] Views views() const;
  [[nodiscard]] RequestView view(const Views& views) const noexcept;

  [[nodiscard]] static Parsed<ExplainedRequest> parse(const ExplainOptions& options);
};

// The words of one --descriptor; the entries are views into them.
[[nodiscard]] Parsed<std::vector<DescriptorEntry>> parse_entries(
    std::span<const std::string> words);

}  // namespace sluice::cli
