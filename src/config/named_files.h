// Files, folders and addresses that a configuration names, with the keys and the places that name
// them: what is wrong with one of them is told where it was written.
//
// Plain data.
#pragma once

#include "config/diagnostics.h"
#include "config/document.h"
#include <sluice/diagnostic.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::config {

class NamedFiles {
 public:
  // `key` with all that it is in: clients.api_keys.file. `path` as it is opened.
  void add(const Node& at, std::string key, std::string path);
  // The path of a file that is named relative to the folder of the configuration. Empty: there is
  // no such node.
  std::string resolve(const Node* at, std::string key, std::string_view folder);

  // What is wrong with the file. Where the file's name is not from the configuration, without a
  // place.
  void error(std::string_view path, Diagnostic what, Diagnostics& diagnostics) const;
  void warning(std::string_view path, Diagnostic what, Diagnostics& diagnostics) const;
  // The same for a message that mentions the file.
  void error(Diagnostic what, Diagnostics& diagnostics) const;

 private:
  struct Named {
    std::string path;
    std::string key;
    Mistake at;  // without a message
  };
  [[nodiscard]] const Named* find(std::string_view path) const;
  static void report(const Named* named, Diagnostic what, Severity severity,
                     Diagnostics& diagnostics);

  std::vector<Named> all_;
};

}  // namespace sluice::config
