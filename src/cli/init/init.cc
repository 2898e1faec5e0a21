#include "cli/init/init.h"

#include "app/config/configuration.h"
#include "base/read_file.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "cli/file.h"
#include "cli/init/recipes.h"
#include "cli/terminal.h"
#include "embed/config/api_key_file.h"
#include "embed/config/api_key_grammar.h"
#include "identity/api_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCommand = "init";
constexpr std::string_view kFileName = "sluice.yaml";
// As the first lines of the recipes and of the key file spell them.
constexpr std::string_view kSchemaName = "sluice.schema.json";
constexpr std::string_view kKeysName = "keys.yaml";
constexpr std::string_view kKeysSchemaName = "keys.schema.json";

struct NewFile {
  std::string path;
  std::string content;
  std::string_view what;      // for people
  bool is_private = false;    // for its owner alone
  bool is_generated = false;  // always the same: an equal file that exists is kept
};

struct NewKey {
  RecipeKey of;
  std::string key;
};

// Everything that is to be written and told.
struct Start {
  const Recipe* recipe = nullptr;
  std::vector<NewKey> keys;
  std::vector<NewFile> files;         // the configuration last: it needs the others
  std::vector<std::string> commands;  // to go on with
};

// ---- what there is to choose ------------------------------------------------------------------

std::string recipe_list() {
  std::size_t width = 0;
  for (const Recipe& recipe : recipes()) width = std::max(width, recipe.name.size());
  std::string text;
  for (const Recipe& recipe : recipes()) {
    text += fmt::format("  {:<{}}  {}\n", recipe.name, width, recipe.summary);
  }
  return text;
}

ExitCode list_recipes(bool json) {
  Output output;
  if (!json) {
    output.write(recipe_list() +
                 "\nType 'sluice init login' to write sluice.yaml from the first.\n");
  }
  for (const Recipe& recipe : recipes()) {
    if (!json) break;
    output.write(fmt::format("{{\"name\":{},\"summary\":{}}}\n", json_string(recipe.name),
                             json_string(recipe.summary)));
  }
  return output.finish(kCommand, ExitCode::ok);
}

ExitCode ask_for_recipe() {
  complain(kCommand, fmt::format("which recipe?\n{}Type 'sluice init login' for the first of them.",
                                 recipe_list()));
  return ExitCode::usage;
}

Parsed<const Recipe*> find_recipe(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Recipe& recipe : recipes()) {
    if (recipe.name == name) return &recipe;
    known.push_back(recipe.name);
  }
  const std::string_view nearest = nearest_word(name, known);
  return mistake(fmt::format("unknown recipe {}", quoted(name)),
                 fmt::format("{}known are {}",
                             nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest),
                             join_words(known)));
}

// ---- what is written --------------------------------------------------------------------------

bool names_folder(const std::string& path) {
  std::error_code ignored;
  return path.ends_with('/') || fs::is_directory(path, ignored);
}

fs::path configuration_path(const std::string& output) {
  return names_folder(output) ? fs::path{output} / kFileName : fs::path{output};
}

std::vector<NewKey> make_keys(const Recipe& recipe) {
  std::vector<NewKey> keys;
  for (const RecipeKey& key : recipe.keys) keys.push_back({key, identity::new_api_key()});
  return keys;
}

std::string key_file(const std::vector<NewKey>& keys) {
  std::vector<identity::ApiKeyRecord> records;
  for (const NewKey& key : keys) {
    identity::ApiKeyRecord& record = records.emplace_back();
    record.name = record.user = key.of.name;
    record.tier = key.of.tier;
    record.hash = identity::hash_api_key(key.key);
  }
  return embed::key_file_text(records, fmt::format("./{}", kKeysSchemaName));
}

// As a shell takes it for one word.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/+=:@,";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return word + "'";
}

std::vector<std::string> commands_for(const Recipe& recipe, const std::string& file) {
  const std::string word = shell_word(file);
  std::vector<std::string> commands{"sluice check " + word};
  for (const std::string_view trial : recipe.trials) {
    commands.push_back(fmt::format(fmt::runtime(trial), fmt::arg("file", word)));
  }
  commands.push_back("sluice serve -c " + word);
  return commands;
}

Start start_from(const Recipe& recipe, const fs::path& path) {
  Start start{.recipe = &recipe, .keys = make_keys(recipe), .files = {}, .commands = {}};
  const auto beside = [&](std::string_view name) { return (path.parent_path() / name).string(); };
  // The last one first, as they are told: each line leans on the one before.
  if (!start.keys.empty()) {
    start.files.push_back({.path = beside(kKeysSchemaName),
                           .content = embed::key_file_schema() + "\n",
                           .what = "its schema for editors",
                           .is_generated = true});
    start.files.push_back({.path = beside(kKeysName),
                           .content = key_file(start.keys),
                           .what = "the hashes of the API keys below",
                           .is_private = true});
  }
  start.files.push_back({.path = beside(kSchemaName),
                         .content = app::configuration_schema() + "\n",
                         .what = "its schema for editors",
                         .is_generated = true});
  start.files.push_back({.path = path.string(),
                         .content = std::string{recipe_text(recipe.name)},
                         .what = "the configuration"});
  start.commands = commands_for(recipe, path.string());
  return start;
}

// ---- writing ----------------------------------------------------------------------------------

Parsed<void> check_names(const std::vector<NewFile>& files) {
  for (std::size_t i = 0; i + 1 < files.size(); ++i) {
    if (files[i].path != files.back().path) continue;
    return mistake(fmt::format("{} is needed beside the configuration", files[i].path),
                   "give the configuration another name");
  }
  return {};
}

bool is_there(const NewFile& file) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(file.path, ignored));
}

bool is_there_and_equal(const NewFile& file) {
  if (!file.is_generated) return false;
  const Parsed<std::string> old = sluice::read_file(file.path, file.content.size());
  return old && *old == file.content;
}

// All that are in the way at once, before anything is written.
Parsed<void> check_free(const std::vector<NewFile>& files) {
  std::string in_the_way;
  bool keys = false;
  for (const NewFile& file : files) {
    if (!is_there(file)) continue;
    in_the_way += (in_the_way.empty() ? "" : ", ") + file.path;
    keys |= file.is_private;
  }
  if (in_the_way.empty()) return {};
  return mistake(fmt::format("there already: {}", in_the_way),
                 fmt::format("choose another place with -o, or replace with --force{}",
                             keys ? "; the keys that were issued stop working then" : ""));
}

Parsed<void> write(const NewFile& file, bool force) {
  if (!force) return create_file(file.path, file.content, file.is_private);
  return file.is_private ? replace_file(file.path, file.content)
                         : write_file(file.path, file.content);
}

// All of them or none, except for what --force has replaced.
Parsed<void> write_all(const std::vector<NewFile>& files, bool force) {
  std::vector<std::string> created;
  for (const NewFile& file : files) {
    const bool is_new = !is_there(file);
    if (Parsed<void> written = write(file, force); !written) {
      std::error_code ignored;
      for (const std::string& path : created) fs::remove(path, ignored);
      return written;
    }
    if (is_new) created.push_back(file.path);
  }
  return {};
}

Parsed<void> make_folder(const fs::path& path) {
  if (path.parent_path().empty()) return {};
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  if (!failed) return {};
  return mistake(
      fmt::format("cannot make the folder {}: {}", path.parent_path().string(), failed.message()));
}

// ---- telling ----------------------------------------------------------------------------------

void tell(const Start& start, Output& output) {
  std::size_t width = 0;
  for (const NewFile& file : start.files) width = std::max(width, file.path.size());
  for (auto file = start.files.rbegin(); file != start.files.rend(); ++file) {
    output.write(fmt::format("wrote {:<{}}  {}\n", file->path, width, file->what));
  }
  if (!start.keys.empty()) output.write("\nAPI keys, shown only now:\n");
  for (const NewKey& key : start.keys) {
    output.write(fmt::format("  {:<10}  {}{}{}\n", key.of.name, output.style(kBold), key.key,
                             output.style(kPlain)));
  }
  output.write("\nNext:\n");
  for (const std::string& command : start.commands) output.write("  " + command + "\n");
}

void tell_json(const Start& start, Output& output) {
  const auto joined = [](const auto& all, const auto& json_of) {
    std::string text;
    for (const auto& one : all) text += (text.empty() ? "" : ",") + json_of(one);
    return text;
  };
  output.write(fmt::format(
      "{{\"recipe\":{},\"files\":[{}],\"keys\":[{}],\"next\":[{}]}}\n",
      json_string(start.recipe->name),
      joined(start.files, [](const NewFile& file) { return json_string(file.path); }),
      joined(start.keys,
             [](const NewKey& key) {
               return fmt::format(R"({{"name":{},"tier":{},"key":{}}})", json_string(key.of.name),
                                  json_string(key.of.tier), json_string(key.key));
             }),
      joined(start.commands, [](const std::string& command) { return json_string(command); })));
}

ExitCode fail(const Diagnostic& mistake, ExitCode code) {
  complain(kCommand, mistake.text());
  return code;
}

}  // namespace

ExitCode init(const InitOptions& options) {
  if (options.list) return list_recipes(options.json);
  if (options.recipe.empty()) return ask_for_recipe();
  const Parsed<const Recipe*> recipe = find_recipe(options.recipe);
  if (!recipe) return fail(recipe.error(), ExitCode::usage);

  const fs::path path = configuration_path(options.output);
  Start start = start_from(**recipe, path);
  if (const auto good = check_names(start.files); !good) {
    return fail(good.error(), ExitCode::usage);
  }
  std::erase_if(start.files, is_there_and_equal);
  if (!options.force) {
    if (const auto free = check_free(start.files); !free)
      return fail(free.error(), ExitCode::failure);
  }
  if (const auto made = make_folder(path); !made) return fail(made.error(), ExitCode::failure);
  if (const auto written = write_all(start.files, options.force); !written) {
    return fail(written.error(), ExitCode::failure);
  }
  Output output;
  if (options.json) {
    tell_json(start, output);
  } else {
    tell(start, output);
  }
  return output.finish(kCommand, ExitCode::ok);
}

}  // namespace sluice::cli
