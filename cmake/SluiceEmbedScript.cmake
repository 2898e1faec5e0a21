# Run by sluice_embed() at build time: writes SOURCE, with the content of FILES in FUNCTION.
string(REPLACE "|" ";" FILES "${FILES}")
set(cases "")
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" text)
  string(FIND "${text}" ")embedded\"" end_of_literal)
  if(NOT end_of_literal EQUAL -1)
    message(FATAL_ERROR "${file} holds the end of the literal that it would stand in")
  endif()
  string(APPEND cases "  if (name == \"${name}\") return R\"embedded(${text})embedded\";\n")
endforeach()
file(
  WRITE "${SOURCE}"
  "// Written at build time by SluiceEmbedScript.cmake.
#include \"${HEADER}\"

namespace ${NAMESPACE} {

std::string_view ${FUNCTION}(std::string_view name) noexcept {
${cases}  return {};
}

}  // namespace ${NAMESPACE}
")
