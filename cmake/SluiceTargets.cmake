# One target per folder, so that linking follows the table of who may include whom.

if(SLUICE_TESTS)
  include(GoogleTest)
endif()

# sluice_library(core SOURCES gcra.cc ... DEPENDS sluice_base ...): the library of one folder.
function(sluice_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(sluice_${name} STATIC ${ARG_SOURCES})
  target_include_directories(sluice_${name} PUBLIC "${PROJECT_SOURCE_DIR}/include"
                                                   "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(sluice_${name} PUBLIC ${ARG_DEPENDS} PRIVATE sluice_options)
  if(BUILD_SHARED_LIBS)
    set_target_properties(sluice_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
endfunction()

# sluice_test(core SOURCES calendar_test.cc ... DEPENDS sluice_core): one test program per folder,
# each of its tests known to ctest. It is called NAME_test.
function(sluice_test name)
  if(NOT SLUICE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_include_directories(${name}_test PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPENDS} sluice_options GTest::gtest_main
                                             GTest::gmock rapidcheck)
  gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()

# sluice_benchmark(core SOURCES core_bench.cc DEPENDS sluice_core): called NAME_bench, built only
# when asked for by name.
function(sluice_benchmark name)
  if(NOT SLUICE_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name}_bench EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_link_libraries(${name}_bench PRIVATE ${ARG_DEPENDS} sluice_options
                                              benchmark::benchmark_main)
endfunction()

# sluice_fuzzer(rfc3339 SOURCES rfc3339_fuzz.cc DEPENDS sluice_base): with the fuzz preset a program
# of libFuzzer, NAME_fuzz; with the tests NAME_replay, which runs the same code over
# tests/corpus/NAME, so that every input once found stays tested, with any compiler.
function(sluice_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(SLUICE_FUZZERS)
    add_executable(${name}_fuzz ${ARG_SOURCES})
    target_link_libraries(${name}_fuzz PRIVATE ${ARG_DEPENDS} sluice_options)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  endif()
  if(SLUICE_TESTS)
    add_executable(${name}_replay ${ARG_SOURCES} "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc")
    target_link_libraries(${name}_replay PRIVATE ${ARG_DEPENDS} sluice_options)
    add_test(NAME fuzz_corpus.${name} COMMAND ${name}_replay
                                              "${PROJECT_SOURCE_DIR}/tests/corpus/${name}")
    set_tests_properties(fuzz_corpus.${name} PROPERTIES TIMEOUT 300)
  endif()
endfunction()
