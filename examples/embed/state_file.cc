// Counts that survive a restart: the limiter finds them by its name, in a file.
#include <sluice/limiter.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

int main() {
  const std::string file =
      (std::filesystem::temp_directory_path() / "sluice_example.state").string();
  std::filesystem::remove(file);
  const sluice::LimiterOptions options{
      .name = "signups",
      .own_table = {.memory = std::size_t{8} << 20U, .file = file},
  };
  for (int run = 1; run <= 2; ++run) {
    sluice::Limiter limiter{"3/day", options};  // gone at the end of the loop, as after a crash
    std::printf("run %d: %s", run,
                limiter.check("203.0.113.7", 2).allowed() ? "allowed" : "rejected");
    std::printf(", %d left\n", static_cast<int>(limiter.peek("203.0.113.7").remaining));
  }

  sluice::LimiterOptions larger = options;
  larger.own_table.memory *= 2;
  try {
    sluice::Limiter limiter{"3/day", larger};
  } catch (const std::runtime_error&) {
    std::puts("the file was made for another size");
  }
  std::filesystem::remove(file);
}

// prints:
// run 1: allowed, 1 left
// run 2: rejected, 1 left
// the file was made for another size
