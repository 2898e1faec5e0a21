// Runs a fuzz target over every file of the folders it is given, as a plain test.

#include "fuzz.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& file) {
  std::ifstream stream{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, std::istreambuf_iterator<char>{}};
}

std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{folder}) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The name comes first, so that the last line before an abort tells which input it was.
std::size_t replay(const std::filesystem::path& folder) {
  const std::vector<std::filesystem::path> files = files_below(folder);
  for (const std::filesystem::path& file : files) {
    std::fprintf(stderr, "%s\n", file.c_str());
    const std::vector<std::uint8_t> bytes = bytes_of(file);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  return files.size();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::size_t replayed = 0;
    for (int i = 1; i < argc; ++i) replayed += replay(argv[i]);
    if (replayed == 0) std::fprintf(stderr, "no inputs found: an empty corpus proves nothing\n");
    return replayed == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
