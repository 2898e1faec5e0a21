# Compiler settings that every target shares.

# A project that takes this tree in by add_subdirectory gets the library and nothing else.
option(SLUICE_PROGRAM "Build the program" ${PROJECT_IS_TOP_LEVEL})
option(SLUICE_ENGINE "Build what knows rules: identity, rules, engine" ${PROJECT_IS_TOP_LEVEL})
option(SLUICE_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SLUICE_INSTALL "Install with cmake --install" ${PROJECT_IS_TOP_LEVEL})
option(BUILD_SHARED_LIBS "Build libsluice as a shared library" OFF)
option(SLUICE_BENCHMARKS "Build the benchmarks" OFF)
option(SLUICE_FUZZERS "Build the fuzz targets (Clang only)" OFF)
set(SLUICE_TEST_FLAGS "" CACHE STRING "Compiler flags of the tests' own files, behind the others")
set(SLUICE_SANITIZE "" CACHE STRING "Sanitizers for every target, as in address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

find_program(SLUICE_CCACHE ccache)
if(PROJECT_IS_TOP_LEVEL AND SLUICE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${SLUICE_CCACHE}")
endif()

add_library(sluice_options INTERFACE)
target_compile_options(
  sluice_options
  INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
            -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough -Wundef)
# A warning of a compiler we have not seen should not break the build of those who embed us.
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(sluice_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these falsely when it optimises: from inside std::string and std::vector, and of
  # members of aggregates that have defaults. Clang and the sanitizers look for the real ones.
  # What people build says nothing of the first: it would be most of what they see.
  # An aggregate's unnamed members are zero in this code base, on purpose.
  target_compile_options(sluice_options INTERFACE -Wno-error=restrict -Wno-error=stringop-overflow
                                                  -Wno-error=maybe-uninitialized
                                                  -Wno-missing-field-initializers
                                                  $<$<CONFIG:Release>:-Wno-restrict>)
else()
  target_compile_options(sluice_options INTERFACE -Wno-missing-field-initializers
                                                  -Wno-missing-designated-field-initializers)
endif()

# GCC 12 copies small structures in vector registers right after it has written them word by word; a
# processor cannot forward such stores to such a load and waits. It also clears them by `rep stos`,
# which takes longer to start than to do. Without both, a decision of the engine costs 8 % less.
include(CheckCXXCompilerFlag)
set(SLUICE_TUNED_COPIES -fno-tree-slp-vectorize
    -mtune-ctrl=^sse_unaligned_load_optimal,^sse_unaligned_store_optimal
    -mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  string(JOIN " " SLUICE_TUNED_COPIES_TEXT ${SLUICE_TUNED_COPIES})
  check_cxx_compiler_flag("${SLUICE_TUNED_COPIES_TEXT}" SLUICE_CAN_TUNE_COPIES)
  if(SLUICE_CAN_TUNE_COPIES)
    target_compile_options(sluice_options INTERFACE ${SLUICE_TUNED_COPIES})
  endif()
endif()

if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
  # atomic16.h with the compiler's own exchange of 16 bytes, not with calls of a library that the
  # sanitizer does not see.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND SLUICE_SANITIZE MATCHES "thread")
    add_compile_options(-mcx16)
  endif()
  if(SLUICE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()
