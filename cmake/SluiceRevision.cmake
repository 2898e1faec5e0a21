include_guard(GLOBAL)

# sluice_revision(TARGET): the target gets a source that defines
#   std::string_view sluice::cli::revision() noexcept
# which cli/revision.h declares. It is looked up with every build, since a commit edits no file.
function(sluice_revision target)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/revision.cc")
  add_custom_target(
    ${target}_revision
    COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${PROJECT_SOURCE_DIR}" "-DSOURCE=${source}" -P
            "${PROJECT_SOURCE_DIR}/cmake/SluiceRevisionScript.cmake"
    BYPRODUCTS "${source}"
    VERBATIM)
  target_sources(${target} PRIVATE "${source}")
  add_dependencies(${target} ${target}_revision)
endfunction()
