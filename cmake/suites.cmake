# Test executables, checks, fuzz targets and benchmarks: each exists as soon as it has a source file.

# Where tests find the program.
set(dhc_test_environment "DHC_BINARY=${CMAKE_BINARY_DIR}/device-health-controller")

# dhc_suite(NAME DIRECTORY LIBRARY...): one doctest executable of all .cc files under tests/DIRECTORY; core's has those
# of the whole controller, too.
function(dhc_suite name directory)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/${directory}/*.cc")
  if(directory STREQUAL core)
    file(GLOB_RECURSE controller_tests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/controller/*.cc")
    # The traces that the documented figures rest on.
    file(GLOB fleet_year CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bench/fleet_year/*.cc")
    list(FILTER fleet_year EXCLUDE REGEX "/main\\.cc$")
    file(GLOB suspects CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bench/suspects/*.cc")
    list(FILTER suspects EXCLUDE REGEX "/main\\.cc$")
    list(APPEND tests ${controller_tests} ${fleet_year} ${suspects})
  endif()
  if(NOT tests)
    return()
  endif()
  if(directory STREQUAL cpprest)
    # The same conformance suite, held against the other adapter.
    file(GLOB conformance CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/loopback/transport/*.cc")
    list(APPEND tests ${conformance})
  endif()
  if(directory MATCHES "^(loopback|cpprest)$")
    file(GLOB shell_support CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/support/shell/*.cc")
  endif()
  add_executable(${name} $<TARGET_OBJECTS:dhc_test_support> ${tests} ${shell_support})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(${name} PRIVATE ${ARGN} dhc_options doctest::doctest rapidcheck nlohmann_json::nlohmann_json)
  dhc_precompile(${name})
  dhc_unite(${name})
  # A folder is a batch: a new file has none but its neighbours to agree with.
  set_target_properties(${name} PROPERTIES UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS tests shell_support)
    cmake_path(GET source PARENT_PATH folder)
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}")
  endforeach()
  # Tests run in the repository's root, so that fixtures are named by their path in it. A filter that matches nothing
  # must not pass: doctest reports success then. The limit is patience, not a claim: other steps keep the same cores busy.
  doctest_discover_tests(${name}
    TEST_PREFIX "${directory}: "
    WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
    PROPERTIES LABELS ${directory} TIMEOUT 1500 FAIL_REGULAR_EXPRESSION "test cases: +0 "
               ENVIRONMENT "${dhc_test_environment}"
               # Sanitizers look for llvm-symbolizer there.
               ENVIRONMENT_MODIFICATION "PATH=path_list_prepend:/usr/lib/llvm-19/bin")
endfunction()

if(DHC_TESTS)
  include(doctest)
  # Once for all suites. Of a template that several object files have, the linker takes the first: that is an optimised one, since what compares
  # plans runs in each test.
  file(GLOB support CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/support/*.cc" "${CMAKE_SOURCE_DIR}/tests/support/core/*.cc")
  add_library(dhc_test_support OBJECT EXCLUDE_FROM_ALL ${support})
  target_include_directories(dhc_test_support PRIVATE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(dhc_test_support PRIVATE dhc_simulator dhc_options doctest::doctest rapidcheck nlohmann_json::nlohmann_json)
  dhc_precompile(dhc_test_support)
  dhc_unite(dhc_test_support)
  # It defines what doctest.h alone only declares.
  set_source_files_properties("${CMAKE_SOURCE_DIR}/tests/support/main.cc" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(DHC_OPTIMISE_OFTEN_RUN)
    target_compile_options(dhc_test_support PRIVATE -O1)
  endif()
  dhc_suite(core_tests core dhc_simulator)
  if(DHC_SANITIZE)
    # A fifth of their compilation is lines for traces: those of the core stay, and doctest names its own.
    target_compile_options(core_tests PRIVATE -g0)
  endif()
  dhc_suite(scenario_tests scenarios dhc_simulator)
  # The scenarios count each step of an incident (tests/scenarios/counted_table.cc): every call of the table goes through them.
  target_link_options(scenario_tests PRIVATE "-Wl,--wrap=_ZN3dhc7step_ofENS_13IncidentPhaseENS_13IncidentEventE")
  dhc_suite(loopback_tests loopback dhc_shell Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
  if(TARGET dhc_cpprest AND NOT DHC_SANITIZE MATCHES thread)
    dhc_suite(cpprest_tests cpprest dhc_cpprest Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
  endif()
  if(TARGET dhc_cpprest AND NOT DHC_SANITIZE)
    # The program of the preset cpprest, to the object file: this one defines what the library's copy of the same file would, which is then not linked
    # (cmake/targets.cmake keeps it out of the batches).
    add_executable(program_over_cpprest EXCLUDE_FROM_ALL ${DHC_MAIN_SOURCES} k8s-client/transport_factory.cc)
    target_compile_definitions(program_over_cpprest PRIVATE DHC_TRANSPORT_CPPREST=1)
    target_link_libraries(program_over_cpprest PRIVATE dhc_cpprest dhc_shell CLI11::CLI11 spdlog::spdlog)
  endif()
  # What tests/page shows in a browser.
  add_executable(page_cluster EXCLUDE_FROM_ALL tests/page/cluster.cc)
  target_link_libraries(page_cluster PRIVATE dhc_shell dhc_options nlohmann_json::nlohmann_json)
  # What tests/cluster runs on its audit logs: the scenarios' own checker of invariants.
  add_executable(audit-check tests/audit/main.cc tests/support/core/audit_log.cc tests/support/core/conduct.cc)
  target_include_directories(audit-check PRIVATE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(audit-check PRIVATE dhc_simulator dhc_options nlohmann_json::nlohmann_json)
  if(TARGET loopback_tests AND TARGET device-health-controller)
    add_dependencies(loopback_tests device-health-controller)
  endif()
endif()

if(DHC_FUZZ)
  # The tests of the same build run over the instrumented library: one compilation serves both.
  target_compile_options(dhc_core PRIVATE -fsanitize=fuzzer-no-link)
  target_compile_options(dhc_core_once PRIVATE -fsanitize=fuzzer-no-link)
  file(GLOB fuzz_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/fuzz/*.cc")
  foreach(source IN LISTS fuzz_sources)
    cmake_path(GET source STEM fuzz_name)
    add_executable(${fuzz_name} EXCLUDE_FROM_ALL ${source})
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
    target_link_libraries(bench PRIVATE dhc_core fmt::fmt nlohmann_json::nlohmann_json)
    file(GLOB suspects_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bench/suspects/*.cc")
    # A year is 100,000s of the simulator's steps: only in these benchmarks is it worth optimising.
    add_library(dhc_simulator_fast STATIC EXCLUDE_FROM_ALL ${dhc_simulator_sources})
    target_include_directories(dhc_simulator_fast PUBLIC "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/src")
    target_link_libraries(dhc_simulator_fast PUBLIC dhc_core dhc_options PRIVATE nlohmann_json::nlohmann_json PkgConfig::re2)
    dhc_precompile(dhc_simulator_fast)
    dhc_unite(dhc_simulator_fast)
    file(GLOB fleet_year_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bench/fleet_year/*.cc")
    add_executable(fleet-year EXCLUDE_FROM_ALL ${fleet_year_sources})
    add_executable(suspects EXCLUDE_FROM_ALL ${suspects_sources} bench/fleet_year/ours.cc)
    target_link_libraries(suspects PRIVATE dhc_simulator_fast fmt::fmt nlohmann_json::nlohmann_json)
    target_link_libraries(fleet-year PRIVATE dhc_simulator_fast fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
  endif()
endif()

# Rules that a compiler does not hold. Each check has a test that plants something bad and sees it go red.
# Debian's own Python: its modules (jsonschema, yaml) come from Debian packages.
find_program(DHC_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(DHC_TESTS AND NOT DHC_PYTHON)
  message(FATAL_ERROR "/usr/bin/python3 is missing: the checks need it")
endif()

function(dhc_check label name)
  add_test(NAME "${label}: ${name}" COMMAND ${ARGN} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  set_tests_properties("${label}: ${name}" PROPERTIES LABELS ${label} TIMEOUT 600
    ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;CXX=${CMAKE_CXX_COMPILER};${dhc_test_environment}")
endfunction()

if(DHC_PYTHON AND NOT DHC_SANITIZE AND NOT DHC_FUZZ)
  dhc_check(checks "core asks for nothing that waits or speaks"
    ${DHC_PYTHON} tools/check_core_symbols.py $<TARGET_FILE:dhc_core> $<TARGET_FILE:dhc_simulator>)
endif()
if(DHC_TESTS AND NOT DHC_SANITIZE AND NOT DHC_FUZZ)
  dhc_check(checks "includes point one way and core stays core" ${DHC_PYTHON} tools/check_includes.py)
  dhc_check(checks "every header includes the standard headers it needs" ${DHC_PYTHON} tools/check_headers.py)
  dhc_check(checks "no test passes without testing" ${DHC_PYTHON} tools/check_tests.py)
  dhc_check(checks "every invariant names its tests" ${DHC_PYTHON} tools/check_invariants.py)
  dhc_check(checks "every folder says what lives there" ${DHC_PYTHON} tools/check_folders.py)
  dhc_check(headers "every header compiles alone" ${DHC_PYTHON} tools/compile_headers.py)
  dhc_check(checks "completion in bash, zsh and fish"
    ${DHC_PYTHON} tests/shells/completion_test.py $<TARGET_FILE:device-health-controller>)
  dhc_check(checks "top on a terminal" ${DHC_PYTHON} tests/shells/top_test.py $<TARGET_FILE:device-health-controller>)
  dhc_check(checks "colours of the demo" ${DHC_PYTHON} tests/shells/demo_test.py $<TARGET_FILE:device-health-controller>)
  file(GLOB check_tests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/checks/*_test.py")
  foreach(check_test IN LISTS check_tests)
    cmake_path(GET check_test STEM stem)
    dhc_check(checks "planted ${stem}" ${DHC_PYTHON} ${check_test})
  endforeach()
  file(GLOB schema_tests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/schema/*.py")
  list(FILTER schema_tests EXCLUDE REGEX "/check_(validate|policy_test_schema)\\.py$")
  foreach(schema_test IN LISTS schema_tests)
    cmake_path(GET schema_test STEM stem)
    dhc_check(schema "${stem}" ${DHC_PYTHON} ${schema_test})
  endforeach()
  dhc_check(schema "training examples" ${DHC_PYTHON} tests/training/training_test.py)
  dhc_check(schema "a webhook's receiver verifies" ${DHC_PYTHON} tests/webhook/receiver_test.py)
  dhc_check(schema "validate tells every key"
    ${DHC_PYTHON} tests/schema/check_validate.py $<TARGET_FILE:device-health-controller>)
  dhc_check(schema "the schema of policy tests accepts and refuses what the program does"
    ${DHC_PYTHON} tests/schema/check_policy_test_schema.py $<TARGET_FILE:device-health-controller>)
endif()
