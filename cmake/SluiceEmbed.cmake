# Text files as part of a program, so that it needs none of them where it runs.
#
# sluice_embed(TARGET FUNCTION HEADER [NAMESPACE sluice::cli] FILES...): the target gets a source
# that defines
#   std::string_view NAMESPACE::FUNCTION(std::string_view name) noexcept
# which HEADER declares: the content of the file NAME.*, or nothing. Edited files are embedded anew.
function(sluice_embed target function header)
  cmake_parse_arguments(ARG "" "NAMESPACE" "" ${ARGN})
  if(NOT ARG_NAMESPACE)
    set(ARG_NAMESPACE sluice::cli)
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${function}.cc")
  list(TRANSFORM ARG_UNPARSED_ARGUMENTS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE
                                                                               files)
  string(REPLACE ";" "|" listed "${files}")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DFUNCTION=${function}" "-DHEADER=${header}" "-DFILES=${listed}"
            "-DSOURCE=${source}" "-DNAMESPACE=${ARG_NAMESPACE}" -P
            "${PROJECT_SOURCE_DIR}/cmake/SluiceEmbedScript.cmake"
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/SluiceEmbedScript.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${source}")
endfunction()
