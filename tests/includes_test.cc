// Who includes whom: the two tables of CONTRIBUTING.md, held against every include line.
//
// Linking alone would not notice a header. The tables are read from the guide itself, so that there
// is one place to change; its section "Who includes whom" says what their words mean.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

using Folders = std::set<std::string>;

constexpr std::string_view kPublic = "include/sluice";

// ---- tables in Markdown -----------------------------------------------------------------------

using Cells = std::vector<std::string>;

// The rows below the one whose first cell is the title, without the line that rules them off.
std::vector<Cells> rows_of_table(std::string_view markdown, std::string_view title) {
  std::vector<Cells> rows;
  std::istringstream lines{std::string{markdown}};
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| " + std::string{title} + " |")) {
      inside = true;
    } else if (inside && line.starts_with("| ")) {
      std::istringstream row{line.substr(1)};
      Cells& cells = rows.emplace_back();
      for (std::string cell; std::getline(row, cell, '|');) cells.push_back(cell);
      if (cells.size() != 3) throw std::runtime_error{"a row without three cells: " + line};
    } else if (inside && !line.starts_with("|--")) {
      break;
    }
  }
  return rows;
}

// What stands in backquotes. The rest of a cell is for people.
std::vector<std::string> names_in(const std::string& cell) {
  static const std::regex kName{"`([^`]+)`"};
  std::vector<std::string> names;
  for (std::sregex_iterator found{cell.begin(), cell.end(), kName}, end; found != end; ++found) {
    names.push_back((*found)[1]);
  }
  return names;
}

// ---- what they say ----------------------------------------------------------------------------

class Layers {
 public:
  explicit Layers(std::string_view markdown) {
    for (const Cells& cells : rows_of_table(markdown, "folder")) add_row(cells);
    for (const Cells& cells : rows_of_table(markdown, "library")) add_library(cells);
  }

  // The row of a folder: its own, or that of everything below a folder above it.
  [[nodiscard]] std::optional<std::string> row_of(const std::string& folder) const {
    if (rows_.contains(folder)) return folder;
    for (fs::path above = fs::path{folder}.parent_path(); !above.empty();
         above = above.parent_path()) {
      const std::string below = above.generic_string() + "/*";
      if (rows_.contains(below)) return below;
    }
    return std::nullopt;
  }

  // Whether a file of one folder may include one of another.
  [[nodiscard]] bool allows(const std::string& folder, const std::string& included) const {
    const std::optional<std::string> row = row_of(included);
    return folder == included || (row && allowed_in(row_of(folder).value()).contains(*row));
  }
  [[nodiscard]] Folders allowed_in(const std::string& row) const {
    Folders allowed;
    for (const std::string& below : rows_.at(row).rests_on) add_with_foundations(below, allowed);
    std::erase_if(allowed, [&](const std::string& one) {
      return std::ranges::any_of(rows_.at(row).ignorant_of, [&](const std::string& ignored) {
        return one == ignored || (ignored.ends_with("/*") && is_below(one, ignored));
      });
    });
    return allowed;
  }

  struct Library {
    std::string name;
    Folders folders;
    bool everywhere = false;
    bool in_tests = false;
  };
  [[nodiscard]] const Library* library_of(const std::string& header) const {
    for (const auto& [prefix, library] : libraries_) {
      if (header.starts_with(prefix)) return &library;
    }
    return nullptr;
  }

  [[nodiscard]] std::vector<std::string> library_headers() const {
    std::vector<std::string> prefixes;
    for (const auto& [prefix, library] : libraries_) prefixes.push_back(prefix);
    return prefixes;
  }
  [[nodiscard]] Folders rows() const {
    Folders rows;
    for (const auto& [folder, row] : rows_) rows.insert(folder);
    return rows;
  }
  [[nodiscard]] Folders mentioned() const {
    Folders all;
    for (const auto& [folder, row] : rows_) {
      all.insert(row.rests_on.begin(), row.rests_on.end());
      all.insert(row.ignorant_of.begin(), row.ignorant_of.end());
    }
    for (const auto& [prefix, library] : libraries_) {
      all.insert(library.folders.begin(), library.folders.end());
    }
    return all;
  }

 private:
  struct Row {
    Folders rests_on;
    Folders ignorant_of;
  };

  // Of pattern a/*: a/b and a/b/c.
  static bool is_below(const std::string& folder, std::string_view pattern) {
    return folder.starts_with(pattern.substr(0, pattern.size() - 1));
  }

  void add_row(const Cells& cells) {
    Row row;
    for (const std::string& name : names_in(cells[1])) row.rests_on.insert(name);
    for (const std::string& name : names_in(cells[2])) row.ignorant_of.insert(name);
    if (cells[1].find("all of the above") != std::string::npos) row.rests_on.merge(rows());
    for (const std::string& folder : names_in(cells[0])) {
      if (!rows_.emplace(folder, row).second) throw std::runtime_error{"two rows of " + folder};
    }
  }

  void add_library(const Cells& cells) {
    Library library{.name = cells[0].substr(1)};
    for (const std::string& folder : names_in(cells[2])) library.folders.insert(folder);
    library.everywhere = cells[2].find("everywhere") != std::string::npos;
    library.in_tests = cells[2].find("tests") != std::string::npos;
    for (const std::string& prefix : names_in(cells[1])) libraries_.emplace(prefix, library);
  }

  void add_with_foundations(const std::string& row, Folders& reached) const {
    if (!reached.insert(row).second) return;
    for (const std::string& below : rows_.at(row).rests_on) add_with_foundations(below, reached);
  }

  std::map<std::string, Row> rows_;
  std::map<std::string, Library> libraries_;  // by what its headers begin with
};

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

// What the C library and the compiler bring along.
bool is_of_the_system(const std::string& header) {
  static const std::regex kSystem{
      "((sys|netinet|arpa|linux)/[a-z0-9_]+"
      "|emmintrin|fcntl|immintrin|malloc|netdb|poll|pthread|sched|signal|unistd)\\.h"};
  return std::regex_match(header, kSystem);
}

std::optional<std::string> project_mistake(const Layers& layers, const Source& source,
                                           const std::string& folder) {
  if (layers.allows(source.folder, folder)) return std::nullopt;
  return source.folder + " may include " +
         joined(layers.allowed_in(layers.row_of(source.folder).value()));
}

std::optional<std::string> quoted_mistake(const Layers& layers, const Source& source,
                                          const std::string& target) {
  const std::string folder = folder_of(target);
  if (source.is_test && (folder == "support" || folder.starts_with("support/"))) {
    return std::nullopt;
  }
  // A test of what uses stores has the real table: no mock stands where the real thing can run.
  if (source.is_test && folder == "store/local" && layers.allows(source.folder, "store")) {
    return std::nullopt;
  }
  if (folder.empty()) return "write the path from src on, as in \"core/gcra.h\"";
  if (is_public(source)) return "public headers include <sluice/...>, nothing of src";
  return project_mistake(layers, source, folder);
}

std::optional<std::string> angled_mistake(const Layers& layers, const Source& source,
                                          const std::string& target) {
  if (is_standard(target)) return std::nullopt;
  if (target.starts_with("sluice/")) {
    return project_mistake(layers, source, "include/" + folder_of(target));
  }
  if (is_public(source)) {
    if (target == "tl/expected.hpp") return std::nullopt;
    return "public headers rest on the standard library and tl::expected alone";
  }
  if (is_of_the_system(target)) return std::nullopt;
  const Layers::Library* const library = layers.library_of(target);
  if (library == nullptr) return "its library has no row in the table of CONTRIBUTING.md";
  const bool allowed = library->everywhere || (library->in_tests && source.is_test) ||
                       std::ranges::any_of(library->folders, [&](const std::string& folder) {
                         return folder == source.folder || folder == layers.row_of(source.folder);
                       });
  if (allowed) return std::nullopt;
  return library->name + "belongs to " + joined(library->folders) +
         (library->in_tests ? " and tests" : "") + " alone";
}

// What is wrong with an include line, and what the folder may rest on; nothing if it is in order.
std::optional<std::string> mistake(const Layers& layers, const Source& source,
                                   const Include& include) {
  return include.quoted ? quoted_mistake(layers, source, include.target)
                        : angled_mistake(layers, source, include.target);
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

const Layers& layers_of_the_guide() {
  static const Layers kLayers = [] {
    std::ifstream guide{kRoot / "CONTRIBUTING.md"};
    return Layers{std::string{std::istreambuf_iterator<char>{guide}, {}}};
  }();
  return kLayers;
}

// src/core/gcra.h belongs to core, include/sluice/time.h to include/sluice.
std::string folder_in_tree(const fs::path& path) {
  const std::string folder = fs::relative(path, kRoot).generic_string();
  constexpr std::string_view kSource = "src/";
  return folder.starts_with(kSource) ? folder.substr(kSource.size()) : folder;
}

Source describe(const fs::path& file) {
  const std::string stem = file.stem().string();
  return {
      .folder = folder_in_tree(file.parent_path()),
      .is_test = stem.ends_with("_test") || stem.ends_with("_bench") || stem.ends_with("_fixture")};
}

void check_file(const fs::path& file) {
  const Layers& layers = layers_of_the_guide();
  const Source source = describe(file);
  ASSERT_TRUE(layers.row_of(source.folder))
      << file << ": the table of CONTRIBUTING.md has no row for " << source.folder;
  std::ifstream stream{file};
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    const std::optional<Include> include = parse_include(line);
    if (!include) continue;
    const std::optional<std::string> wrong = mistake(layers, source, *include);
    EXPECT_FALSE(wrong) << fs::relative(file, kRoot).string() << ":" << number << ": includes "
                        << include->target << "; " << wrong.value_or("");
  }
}

TEST(Includes, EveryFileRestsOnlyOnWhatItsFolderMayRestOn) {
  for (const fs::path& file : sources_below(kRoot / "src")) check_file(file);
  for (const fs::path& file : sources_below(kRoot / "include")) check_file(file);
}

bool has_code(const fs::path& folder) {
  return std::ranges::any_of(fs::directory_iterator{folder}, [](const auto& entry) {
    return entry.path().extension() == ".h" || entry.path().extension() == ".cc";
  });
}

TEST(Includes, TheTableHasARowForEveryFolder) {
  for (const char* root : {"src", "include/sluice"}) {
    for (const auto& entry : fs::recursive_directory_iterator{kRoot / root}) {
      if (!entry.is_directory() || !has_code(entry.path())) continue;
      const std::string folder = folder_in_tree(entry.path());
      // Lua beside the store it belongs to, files that tests read beside the tests.
      if (folder.find("scripts") != std::string::npos) continue;
      if (folder.find("testdata") != std::string::npos) continue;
      EXPECT_TRUE(layers_of_the_guide().row_of(folder)) << "add a row for " << folder;
    }
  }
}

TEST(Includes, TheTableNamesOnlyFoldersThatExist) {
  const Layers& layers = layers_of_the_guide();
  EXPECT_GT(layers.rows().size(), 15U);  // it was found at all
  Folders named = layers.rows();
  named.merge(layers.mentioned());
  for (std::string folder : named) {
    if (folder.ends_with("/*")) folder.resize(folder.size() - 2);
    EXPECT_TRUE(fs::is_directory(kRoot / folder) || fs::is_directory(kRoot / "src" / folder))
        << folder;
  }
  for (const std::string& folder : layers.mentioned()) {
    EXPECT_TRUE(folder.ends_with("/*") || layers.row_of(folder)) << folder << " has no row";
  }
}

// A library that nothing includes any more has no row.
TEST(Includes, EveryLibraryOfTheTableIsIncludedSomewhere) {
  std::string all;
  for (const char* root : {"src", "include", "tests/sim"}) {
    for (const fs::path& file : sources_below(kRoot / root)) {
      std::ifstream stream{file};
      all.append(std::istreambuf_iterator<char>{stream}, {});
    }
  }
  for (const std::string& prefix : layers_of_the_guide().library_headers()) {
    EXPECT_NE(all.find("#include <" + prefix), std::string::npos) << prefix;
  }
}

// ---- the check itself -------------------------------------------------------------------------

bool accepts(const Layers& layers, const Source& source, const std::string& line) {
  return !mistake(layers, source, parse_include(line).value());
}

const Layers& sample() {
  static const Layers kSample{R"(
# A guide with two tables

| folder | rests on | stays ignorant of |
|---|---|---|
| `include/sluice` | `include/sluice/core` | everything else |
| `include/sluice/core` | `include/sluice` | |
| `base` | `include/sluice` | `include/sluice/core`, the domain |
| `core` | `base`, `include/sluice/core` | clocks |
| `net` | `base` | limits |
| `store` | `core` | |
| `store/local` | `store` | |
| `engine` | `store` | `net` |
| `frontend` | `engine` | `store`, `store/*` |
| `frontend/*` | `frontend`, `net`, `store/local` | `store/*`, one another |
| `app`, `embed` | all of the above | nothing |
| `cli`, `cli/*` | all of the above, `cli`, `cli/*` | nothing |

Some prose, and `more` of it.

| library | headers | folders |
|---|---|---|
| CLI11 | `CLI/` | `cli`, `cli/*` |
| fmt | `fmt/` | everywhere |
| GoogleTest | `gtest/`, `gmock/` | tests |
| OpenSSL | `openssl/` | `net`, tests |
| zlib | `zlib.h` | `cli` |
)"};
  return kSample;
}

bool accepts(const Source& source, const std::string& line) {
  return accepts(sample(), source, line);
}

TEST(IncludeCheck, LetsTestsOfTheEngineHaveTheRealTable) {
  EXPECT_TRUE(accepts({"engine", true}, "#include \"store/local/local_store.h\""));
  EXPECT_FALSE(accepts({"engine"}, "#include \"store/local/local_store.h\""));
  EXPECT_FALSE(accepts({"net", true}, "#include \"store/local/local_store.h\""));
}

TEST(IncludeCheck, AcceptsFoundationsHoweverDeep) {
  EXPECT_TRUE(accepts({"core"}, "#include \"core/gcra.h\""));
  EXPECT_TRUE(accepts({"engine"}, "#include \"base/text.h\""));
  EXPECT_TRUE(accepts({"engine"}, "#include <sluice/time.h>"));
  EXPECT_TRUE(accepts({"engine"}, "#include <sluice/core/gcra.h>"));
  EXPECT_TRUE(accepts({"frontend/check"}, "#include \"net/socket.h\""));
  EXPECT_TRUE(accepts({"cli"}, "#include \"frontend/gateway/proxy.h\""));
  EXPECT_TRUE(accepts({"cli/load/http"}, "#include \"cli/terminal.h\""));
  EXPECT_TRUE(accepts({"cli"}, "#include \"cli/load/load.h\""));
  EXPECT_TRUE(accepts({"embed"}, "#include \"frontend/gateway/proxy.h\""));
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
  EXPECT_FALSE(accepts({"app"}, "#include \"cli/terminal.h\""));
  EXPECT_FALSE(accepts({"app"}, "#include \"embed/engine.h\""));
  EXPECT_FALSE(accepts({"core"}, "#include \"gcra.h\""));
  EXPECT_FALSE(accepts({"core"}, "#include \"unheard/of.h\""));
}

// Whatever lies below: a folder that is ignorant of store/* is so of stores that come later, too.
TEST(IncludeCheck, TakesAStarForAllFoldersBelow) {
  EXPECT_FALSE(accepts({"frontend"}, "#include \"store/store.h\""));
  EXPECT_TRUE(accepts({"frontend/check"}, "#include \"store/store.h\""));
  EXPECT_FALSE(accepts({"frontend/check"}, "#include \"store/local/table.h\""));
  EXPECT_EQ(sample().row_of("frontend/a/b"), "frontend/*");
  EXPECT_EQ(sample().row_of("frontends"), std::nullopt);
}

TEST(IncludeCheck, KeepsPublicHeadersToThemselves) {
  const Source header{"include/sluice"};
  EXPECT_TRUE(accepts(header, "#include <cstdint>"));
  EXPECT_TRUE(accepts(header, "#include <sluice/time.h>"));
  EXPECT_TRUE(accepts(header, "#include <tl/expected.hpp>"));
  EXPECT_FALSE(accepts(header, "#include <fmt/format.h>"));
  EXPECT_FALSE(accepts(header, "#include <unistd.h>"));
  EXPECT_FALSE(accepts(header, "#include \"base/text.h\""));
}

TEST(IncludeCheck, ConfinesThirdPartyLibraries) {
  EXPECT_TRUE(accepts({"core"}, "#include <fmt/format.h>"));
  EXPECT_TRUE(accepts({"cli"}, "#include <CLI/CLI.hpp>"));
  EXPECT_TRUE(accepts({"cli/load"}, "#include <CLI/CLI.hpp>"));
  EXPECT_FALSE(accepts({"cli/load"}, "#include <zlib.h>"));
  EXPECT_FALSE(accepts({"app"}, "#include <CLI/CLI.hpp>"));
  EXPECT_TRUE(accepts({"net"}, "#include <openssl/ssl.h>"));
  EXPECT_FALSE(accepts({"engine"}, "#include <openssl/ssl.h>"));
  EXPECT_TRUE(accepts({"engine", true}, "#include <openssl/ssl.h>"));
  EXPECT_TRUE(accepts({"engine", true}, "#include <gtest/gtest.h>"));
  EXPECT_FALSE(accepts({"engine"}, "#include <gtest/gtest.h>"));
}

TEST(IncludeCheck, WantsARowForEveryLibrary) {
  EXPECT_FALSE(accepts({"core"}, "#include <boost/asio.hpp>"));
  EXPECT_FALSE(accepts({"core", true}, "#include <sqlite3.h>"));
  EXPECT_TRUE(accepts({"core"}, "#include <sys/socket.h>"));
  EXPECT_TRUE(accepts({"core"}, "#include <unistd.h>"));
  EXPECT_TRUE(accepts({"core"}, "#include <vector>"));
}

TEST(IncludeCheck, LetsOnlyTestsIncludeTestSupport) {
  const std::string line = "#include \"support/reference_model.h\"";
  EXPECT_TRUE(accepts({"core", true}, line));
  EXPECT_FALSE(accepts({"core", false}, line));
}

// What the guide must go on saying, whatever else changes in it.
TEST(Includes, TheGuideConfinesWhatMatters) {
  const Layers& guide = layers_of_the_guide();
  for (const char* folder : {"base", "core", "rules", "engine", "store/local", "frontend/gateway",
                             "cli", "limiter", "config", "metrics", "net/http"}) {
    EXPECT_FALSE(accepts(guide, {folder}, "#include <openssl/ssl.h>")) << folder;
    EXPECT_FALSE(accepts(guide, {folder}, "#include <boost/asio.hpp>")) << folder;
  }
  EXPECT_FALSE(accepts(guide, {"engine"}, "#include \"net/socket.h\""));
  EXPECT_FALSE(accepts(guide, {"net"}, "#include \"net/http/request_parser.h\""));
  EXPECT_FALSE(accepts(guide, {"rules"}, "#include \"store/store.h\""));
  EXPECT_FALSE(accepts(guide, {"frontend/gateway"}, "#include \"store/store.h\""));
  EXPECT_FALSE(accepts(guide, {"frontend/gateway"}, "#include \"frontend/admin/guard.h\""));
  EXPECT_FALSE(accepts(guide, {"base"}, "#include <sluice/core/gcra.h>"));
}

}  // namespace
