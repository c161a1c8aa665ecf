# Test executables, fuzz targets and benchmarks: each exists as soon as it has a source file.

include(doctest)

# dhc_suite(NAME DIRECTORY LIBRARY...): one doctest executable of all .cc files under tests/DIRECTORY.
function(dhc_suite name directory)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/${directory}/*.cc")
  if(NOT tests)
    return()
  endif()
  file(GLOB support CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/support/*.cc"
    "${CMAKE_SOURCE_DIR}/tests/support/core/*.cc")
  if(directory STREQUAL loopback)
    file(GLOB shell_support CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/support/shell/*.cc")
  endif()
  add_executable(${name} ${tests} ${support} ${shell_support})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(${name} PRIVATE ${ARGN} dhc_options doctest::doctest rapidcheck nlohmann_json::nlohmann_json)
  dhc_precompile(${name})
  # Tests run in the repository's root, so that fixtures are named by their path in it. A filter that matches nothing
  # must not pass: doctest reports success then.
  doctest_discover_tests(${name}
    TEST_PREFIX "${directory}: "
    WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
    PROPERTIES LABELS ${directory} TIMEOUT 120 FAIL_REGULAR_EXPRESSION "test cases: +0 "
               ENVIRONMENT "DHC_BINARY=${CMAKE_BINARY_DIR}/device-health-controller")
endfunction()

dhc_suite(core_tests core dhc_core)
dhc_suite(scenario_tests scenarios dhc_core)
dhc_suite(loopback_tests loopback dhc_shell Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
if(TARGET loopback_tests AND TARGET dhc_cpprest)
  target_compile_definitions(loopback_tests PRIVATE DHC_HAVE_CPPREST=1)
  target_link_libraries(loopback_tests PRIVATE dhc_cpprest)
endif()
if(TARGET loopback_tests AND TARGET device-health-controller)
  add_dependencies(loopback_tests device-health-controller)
endif()

if(DHC_FUZZ)
  file(GLOB fuzz_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/fuzz/*.cc")
  foreach(source IN LISTS fuzz_sources)
    cmake_path(GET source STEM fuzz_name)
    add_executable(${fuzz_name} ${source})
    target_link_libraries(${fuzz_name} PRIVATE dhc_core)
    target_link_options(${fuzz_name} PRIVATE -fsanitize=fuzzer)
    list(APPEND fuzz_targets ${fuzz_name})
  endforeach()
  add_custom_target(fuzzers DEPENDS ${fuzz_targets})
endif()

if(DHC_BENCH)
  file(GLOB bench_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bench/*.cc")
  if(bench_sources)
    add_executable(bench ${bench_sources})
    target_link_libraries(bench PRIVATE dhc_shell fmt::fmt nlohmann_json::nlohmann_json)
  endif()
endif()
