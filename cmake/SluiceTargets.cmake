# One target per folder, so that linking follows the table of who may include whom.

# Where CMAKE_UNITY_BUILD is on, the files of one folder are compiled together, at most twelve at
# once: most of the time of a small file goes into the headers that all of them include. Names in
# their unnamed namespaces have to differ.
function(sluice_group_sources)
  foreach(source ${ARGN})
    get_filename_component(folder "${source}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "in_${folder}" folder)
    math(EXPR files_of_${folder} "${files_of_${folder}} + 1")
    math(EXPR batch "(${files_of_${folder}} - 1) / 12")
    get_source_file_property(group "${source}" UNITY_GROUP)
    if(NOT group)
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${batch}")
    endif()
  endforeach()
endfunction()

# sluice_library(core SOURCES gcra.cc ... DEPENDS sluice_base ...): the library of one folder.
function(sluice_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(sluice_${name} STATIC ${ARG_SOURCES})
  sluice_group_sources(${ARG_SOURCES})
  set_target_properties(sluice_${name} PROPERTIES UNITY_BUILD_MODE GROUP)
  target_include_directories(sluice_${name} PUBLIC "${PROJECT_SOURCE_DIR}/include"
                                                   "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(sluice_${name} PUBLIC ${ARG_DEPENDS} PRIVATE sluice_options)
  if(BUILD_SHARED_LIBS)
    set_target_properties(sluice_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
endfunction()

# sluice_frontend(gateway SOURCES ... DEPENDS ...): the library of one front end, called
# sluice_frontend_NAME. The server links all of them.
function(sluice_frontend name)
  sluice_library(frontend_${name} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY SLUICE_FRONTENDS sluice_frontend_${name})
endfunction()

# sluice_test(core SOURCES calendar_test.cc ... DEPENDS sluice_core): one test program per folder,
# called NAME_test. ctest knows it as NAME, or as NAME.1 to NAME.N where SHARDS N splits its tests
# among N processes.
#
#   PLAIN     sanitizers make it skip or shrink tests: it also runs in the plain build
#   THREADS   its subject is shared by threads: it also runs under ThreadSanitizer
#   HEAVY     it runs for longer than the compiler takes to optimise it
function(sluice_test name)
  if(NOT SLUICE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "PLAIN;THREADS;HEAVY" "SHARDS" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPENDS})
  if(ARG_HEAVY)
    sluice_test_program(${name}_test HEAVY)
  else()
    sluice_test_program(${name}_test)
  endif()

  set(labels)
  if(ARG_PLAIN)
    list(APPEND labels plain)
    add_dependencies(plain_tests ${name}_test)
  endif()
  if(ARG_THREADS)
    list(APPEND labels threads)
    add_dependencies(threads_tests ${name}_test)
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(test ${name})
    if(ARG_SHARDS GREATER 1)
      set(test ${name}.${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name}_test --gtest_brief=1)
    set_tests_properties(
      ${test} PROPERTIES ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}"
                         LABELS "unit;${labels}" TIMEOUT 900)
  endforeach()
endfunction()

# sluice_test_program(PROGRAM [HEAVY]): settings that all test programs share.
function(sluice_test_program program)
  # Most tests take longer to optimise than to run slowly.
  set(headers sluice_test_headers)
  separate_arguments(flags UNIX_COMMAND "${SLUICE_TEST_FLAGS}")
  if("HEAVY" IN_LIST ARGN)
    set(headers sluice_heavy_test_headers)
    set(flags)
  endif()
  target_compile_options(${program} PRIVATE ${flags} -pthread)
  target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${program} PRIVATE sluice_options GTest::gtest_main GTest::gmock rapidcheck
                                           Threads::Threads)
  set_target_properties(${program} PROPERTIES UNITY_BUILD OFF)
  # GCC takes a precompiled header only where all definitions of a command line are the same.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_precompile_headers(${program} REUSE_FROM ${headers})
  endif()
endfunction()

# What nearly every test includes, compiled once with the flags of the tests that use it.
function(sluice_test_headers target)
  add_library(${target} OBJECT "${PROJECT_SOURCE_DIR}/tests/support/test_headers.cc")
  # A time in it would make every file that uses it new for ccache.
  target_compile_options(${target} PRIVATE ${ARGN} -pthread -Xclang -fno-pch-timestamp)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE sluice_options GTest::gtest GTest::gmock rapidcheck
                                          fmt::fmt tl::expected Threads::Threads)
  target_precompile_headers(${target} PRIVATE
                            "${PROJECT_SOURCE_DIR}/tests/support/test_headers.h")
endfunction()

if(SLUICE_TESTS)
  # What `./dev test` builds where it does not build everything.
  add_custom_target(plain_tests)
  add_custom_target(threads_tests)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    separate_arguments(flags UNIX_COMMAND "${SLUICE_TEST_FLAGS}")
    sluice_test_headers(sluice_test_headers ${flags})
    sluice_test_headers(sluice_heavy_test_headers)
  endif()
endif()

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
    target_include_directories(${name}_fuzz PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  endif()
  if(SLUICE_TESTS)
    add_executable(${name}_replay ${ARG_SOURCES})
    target_include_directories(${name}_replay PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(${name}_replay PRIVATE ${ARG_DEPENDS} sluice_options sluice_replay_main)
    add_test(NAME fuzz_corpus.${name} COMMAND ${name}_replay
                                              "${PROJECT_SOURCE_DIR}/tests/corpus/${name}")
    set_tests_properties(fuzz_corpus.${name} PROPERTIES TIMEOUT 300)
  endif()
endfunction()
