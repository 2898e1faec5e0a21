// Who includes whom: the table of the contributing guide, held against every include line.
//
// Linking alone would not notice a header. A folder may include itself, what it rests on and what
// that rests on in turn, except for what it is to stay ignorant of.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

using Folders = std::set<std::string>;

constexpr std::string_view kPublic = "include/sluice";

struct Row {
  Folders rests_on;
  Folders ignorant_of;
};

// `app` and `cli` rest on everything and are not listed.
const std::map<std::string, Row>& table() {
  static const Folders kFrontEnds{"frontend",       "frontend/admin", "frontend/gateway",
                                  "frontend/check", "frontend/envoy", "frontend/resp"};
  static const Folders kStores{"store", "store/local", "store/redis", "store/peer"};
  static const Row kFrontEnd{{"frontend", "engine", "net", "net/http", "metrics"}, kStores};
  static const Folders kAlgorithms{"include/sluice/core"};  // which limiter.h needs
  static const std::map<std::string, Row> kTable{
      {std::string{kPublic}, {kAlgorithms}},
      {"include/sluice/core", {{std::string{kPublic}}}},
      {"base", {{std::string{kPublic}}, kAlgorithms}},
      {"core", {{"base", "include/sluice/core"}}},
      {"metrics", {{"base"}, kAlgorithms}},
      {"config", {{"base"}, kAlgorithms}},
      {"identity", {{"base"}, kAlgorithms}},
      {"net", {{"base", "metrics"}, kAlgorithms}},
      {"net/http", {{"base"}, kAlgorithms}},
      {"net/http/client", {{"net", "net/http"}, kAlgorithms}},
      {"rules", {{"core", "identity", "config"}}},
      {"rules/source", {{"rules", "net", "net/http", "metrics"}}},
      {"rules/sync", {{"rules/source", "rules", "net", "metrics"}}},
      {"store", {{"core", "metrics"}}},
      {"store/local", {{"store", "core", "metrics"}}},
      {"store/redis", {{"store", "core", "metrics", "net"}}},
      {"store/peer", {{"store", "core", "metrics", "net"}}},
      {"limiter", {{"store/local", "core"}}},
      {"engine", {{"core", "identity", "rules", "store", "metrics"}}},
      {"frontend", {{"engine", "net/http", "metrics"}, kStores}},
      {"frontend/admin", kFrontEnd},
      {"frontend/gateway", kFrontEnd},
      {"frontend/check", kFrontEnd},
      {"frontend/envoy", kFrontEnd},
      {"frontend/resp", kFrontEnd},
      {"admin",
       {{"rules", "rules/source", "rules/sync", "engine", "net", "net/http", "metrics"},
        kFrontEnds}},
  };
  return kTable;
}

const Folders& unrestricted() {
  static const Folders kFolders{"app", "cli"};
  return kFolders;
}

// A third-party library appears in as few folders as possible. Those not listed are free to use.
const std::map<std::string, Folders>& confined() {
  static const std::map<std::string, Folders> kConfined{
      {"CLI/", {"cli"}},
      {"date/", {"base", "core"}},
      {"libpq-fe.h", {"rules/source"}},
      {"maxminddb.h", {"identity"}},
      {"nghttp2/", {"net"}},
      {"re2/", {"rules"}},
      {"sqlite3.h", {"rules/source"}},
      {"yaml-cpp/", {"config"}},
  };
  return kConfined;
}

bool is_known(const std::string& folder) {
  return table().contains(folder) || unrestricted().contains(folder);
}

void add_with_foundations(const std::string& folder, Folders& reached) {
  if (!reached.insert(folder).second) return;
  for (const std::string& below : table().at(folder).rests_on) add_with_foundations(below, reached);
}

Folders allowed_in(const std::string& folder) {
  Folders allowed;
  add_with_foundations(folder, allowed);
  for (const std::string& ignored : table().at(folder).ignorant_of) allowed.erase(ignored);
  return allowed;
}

Folders allowed_or_none(const std::string& folder) {
  return table().contains(folder) ? allowed_in(folder) : Folders{};
}

std::string joined(const Folders& folders) {
  std::string text;
  for (const std::string& folder : folders) text += (text.empty() ? "" : ", ") + folder;
  return text.empty() ? "nothing" : text;
}

struct Include {
  std::string target;   // core/gcra.h
  bool quoted = false;  // "" or <>
};

struct Source {
  std::string folder;  // core
  bool is_test = false;
};

bool is_public(const Source& source) { return source.folder.starts_with(kPublic); }

std::string folder_of(const std::string& path) {
  return fs::path{path}.parent_path().generic_string();
}

bool is_standard(const std::string& header) {
  return header.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

std::optional<std::string> project_mistake(const Source& source, const std::string& folder) {
  if (unrestricted().contains(source.folder)) return std::nullopt;
  const Folders allowed = allowed_in(source.folder);
  if (allowed.contains(folder)) return std::nullopt;
  return source.folder + " may include " + joined(allowed);
}

std::optional<std::string> quoted_mistake(const Source& source, const std::string& target) {
  const std::string folder = folder_of(target);
  if (source.is_test && (folder == "support" || folder.starts_with("support/"))) {
    return std::nullopt;
  }
  // A test of what uses stores has the real table: no mock stands where the real thing can run.
  const bool uses_stores = allowed_or_none(source.folder).contains("store");
  if (source.is_test && uses_stores && folder == "store/local") return std::nullopt;
  if (folder.empty()) return "write the path from src on, as in \"core/gcra.h\"";
  if (is_public(source)) return "public headers include <sluice/...>, nothing of src";
  return project_mistake(source, folder);
}

std::optional<std::string> angled_mistake(const Source& source, const std::string& target) {
  if (target.starts_with("sluice/")) return project_mistake(source, "include/" + folder_of(target));
  if (is_public(source) && !is_standard(target) && target != "tl/expected.hpp") {
    return "public headers rest on the standard library and tl::expected alone";
  }
  for (const auto& [prefix, folders] : confined()) {
    if (target.starts_with(prefix) && !folders.contains(source.folder)) {
      return prefix + " belongs to " + joined(folders) + " alone";
    }
  }
  return std::nullopt;
}

// What is wrong with an include line, and what the folder may rest on; nothing if it is in order.
std::optional<std::string> mistake(const Source& source, const Include& include) {
  return include.quoted ? quoted_mistake(source, include.target)
                        : angled_mistake(source, include.target);
}

std::optional<Include> parse_include(const std::string& line) {
  static const std::regex kPattern{R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)"};
  std::smatch match;
  if (!std::regex_match(line, match, kPattern)) return std::nullopt;
  return Include{.target = match[2], .quoted = match[1] == "\""};
}

// ---- the source tree --------------------------------------------------------------------------

const fs::path kRoot{SLUICE_SOURCE_DIR};

std::vector<fs::path> sources_below(const fs::path& folder) {
  static const Folders kExtensions{".h", ".cc"};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    if (kExtensions.contains(entry.path().extension().string())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The folders of single commands have the rights of `cli`.
std::string row_of(const std::string& folder) {
  for (const std::string& above : unrestricted()) {
    if (folder.starts_with(above + "/")) return above;
  }
  return folder;
}

// src/core/gcra.h belongs to core, include/sluice/time.h to include/sluice.
std::string owner_of(const fs::path& file) {
  const std::string folder = fs::relative(file, kRoot).parent_path().generic_string();
  constexpr std::string_view kSource = "src/";
  return folder.starts_with(kSource) ? row_of(folder.substr(kSource.size())) : folder;
}

Source describe(const fs::path& file) {
  const std::string stem = file.stem().string();
  return {
      .folder = owner_of(file),
      .is_test = stem.ends_with("_test") || stem.ends_with("_bench") || stem.ends_with("_fixture")};
}

void check_file(const fs::path& file) {
  const Source source = describe(file);
  ASSERT_TRUE(is_known(source.folder))
      << file << ": the table of includes_test.cc and CONTRIBUTING.md does not know the folder "
      << source.folder;
  std::ifstream stream{file};
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    const std::optional<Include> include = parse_include(line);
    if (!include) continue;
    const std::optional<std::string> wrong = mistake(source, *include);
    EXPECT_FALSE(wrong) << fs::relative(file, kRoot).string() << ":" << number << ": includes "
                        << include->target << "; " << wrong.value_or("");
  }
}

TEST(Includes, EveryFileRestsOnlyOnWhatItsFolderMayRestOn) {
  for (const fs::path& file : sources_below(kRoot / "src")) check_file(file);
  for (const fs::path& file : sources_below(kRoot / "include")) check_file(file);
}

// A folder that holds no code yet has to be in the table as well.
TEST(Includes, TheTableKnowsEveryFolderBelowSrc) {
  for (const auto& entry : fs::recursive_directory_iterator{kRoot / "src"}) {
    if (!entry.is_directory()) continue;
    const std::string folder = fs::relative(entry.path(), kRoot / "src").generic_string();
    // Lua beside the store it belongs to, files that tests read beside the tests.
    if (folder.find("scripts") != std::string::npos) continue;
    if (folder.find("testdata") != std::string::npos) continue;
    EXPECT_TRUE(is_known(row_of(folder))) << "add " << folder << " to the table";
  }
}

TEST(Includes, TheTableNamesOnlyFoldersThatItHasRowsFor) {
  for (const auto& [folder, row] : table()) {
    for (const std::string& below : row.rests_on) EXPECT_TRUE(is_known(below)) << folder;
    for (const std::string& ignored : row.ignorant_of) EXPECT_TRUE(is_known(ignored)) << folder;
  }
}

// ---- the check itself -------------------------------------------------------------------------

bool accepts(const Source& source, const std::string& line) {
  return !mistake(source, parse_include(line).value());
}

TEST(IncludeCheck, LetsTestsOfTheEngineHaveTheRealTable) {
  EXPECT_TRUE(accepts({"engine", true}, "#include \"store/local/local_store.h\""));
  EXPECT_FALSE(accepts({"engine"}, "#include \"store/local/local_store.h\""));
  EXPECT_FALSE(accepts({"rules", true}, "#include \"store/local/local_store.h\""));
}

TEST(IncludeCheck, AcceptsFoundationsHoweverDeep) {
  EXPECT_TRUE(accepts({"core"}, "#include \"core/gcra.h\""));
  EXPECT_TRUE(accepts({"engine"}, "#include \"base/text.h\""));
  EXPECT_TRUE(accepts({"engine"}, "#include <sluice/time.h>"));
  EXPECT_TRUE(accepts({"store/redis"}, "#include \"net/socket.h\""));
  EXPECT_TRUE(accepts({"cli"}, "#include \"frontend/gateway/proxy.h\""));
}

TEST(IncludeCheck, RefusesWhatLiesAboveOrBeside) {
  EXPECT_FALSE(accepts({"core"}, "#include \"store/store.h\""));
  EXPECT_FALSE(accepts({"base"}, "  #  include \"core/gcra.h\"  // why not?"));
  EXPECT_FALSE(accepts({"base"}, "#include <sluice/core/gcra.h>"));
  EXPECT_FALSE(accepts({"engine"}, "#include \"net/socket.h\""));
  EXPECT_FALSE(accepts({"store/local"}, "#include \"net/socket.h\""));
  EXPECT_FALSE(accepts({"frontend/check"}, "#include \"frontend/gateway/proxy.h\""));
  EXPECT_FALSE(accepts({"frontend"}, "#include \"frontend/gateway/proxy.h\""));
  EXPECT_FALSE(accepts({"frontend"}, "#include \"net/socket.h\""));
  EXPECT_FALSE(accepts({"frontend/check"}, "#include \"store/store.h\""));
  EXPECT_FALSE(accepts({"admin"}, "#include \"frontend/gateway/proxy.h\""));
  EXPECT_FALSE(accepts({"core"}, "#include \"gcra.h\""));
}

TEST(IncludeCheck, KeepsPublicHeadersToThemselves) {
  const Source header{"include/sluice"};
  EXPECT_TRUE(accepts(header, "#include <cstdint>"));
  EXPECT_TRUE(accepts(header, "#include <sluice/time.h>"));
  EXPECT_TRUE(accepts(header, "#include <tl/expected.hpp>"));
  EXPECT_FALSE(accepts(header, "#include <fmt/format.h>"));
  EXPECT_FALSE(accepts(header, "#include \"base/text.h\""));
}

TEST(IncludeCheck, ConfinesThirdPartyLibraries) {
  EXPECT_TRUE(accepts({"cli"}, "#include <CLI/CLI.hpp>"));
  EXPECT_FALSE(accepts({"app"}, "#include <CLI/CLI.hpp>"));
  EXPECT_TRUE(accepts({"core"}, "#include <date/tz.h>"));
  EXPECT_FALSE(accepts({"engine"}, "#include <date/date.h>"));
}

TEST(IncludeCheck, LetsOnlyTestsIncludeTestSupport) {
  const std::string line = "#include \"support/reference_model.h\"";
  EXPECT_TRUE(accepts({"core", true}, line));
  EXPECT_FALSE(accepts({"core", false}, line));
}

}  // namespace
