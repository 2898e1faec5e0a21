# Run by sluice_revision() with every build: writes SOURCE, if it would change, with the revision of
# the tree in FOLDER.
execute_process(
  COMMAND git -C "${FOLDER}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE revision
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET
  RESULT_VARIABLE failed)
if(failed OR NOT revision MATCHES "^[0-9a-f]+$")
  set(revision "unknown") # a tree without its history, or a machine without git
endif()
set(text
    "// Written at build time by SluiceRevisionScript.cmake.
#include \"cli/revision.h\"

namespace sluice::cli {

std::string_view revision() noexcept { return \"${revision}\"; }

}  // namespace sluice::cli
")
set(before "")
if(EXISTS "${SOURCE}")
  file(READ "${SOURCE}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${SOURCE}" "${text}")
endif()
