# The libraries and the program. The simulator, core as well as shell, has libraries of its own: the controller never looks into it.

include(library)

set(dhc_core_sources ${DHC_CORE_SOURCES})
list(FILTER dhc_core_sources EXCLUDE REGEX "^simulator/")
set(dhc_simulator_sources ${DHC_CORE_SOURCES})
list(FILTER dhc_simulator_sources INCLUDE REGEX "^simulator/")

# What no turn waits for - commands, configuration, a person's page, the rarer reconcilers - is a third of the core's text: releases compile
# it for size. The rest at -Os would be a fifth slower in `bench reaction` and a third in `bench taints`.
set(dhc_core_once_sources ${dhc_core_sources})
list(FILTER dhc_core_once_sources INCLUDE REGEX "^(domain/policy/|domain/(findings/suspects|incidents/suspect_)|k8s-client/auth/|reconcilers/(hand_over|job_retry|owners|status|uninstall)/|src/cli/|src/app/(access|bind_address|earlier_state|foresight|health_report|live/|pages|policy_map|record/(audit_reader|fault_reader|file_order|other_past)|server_version|verdict_json|webhook/)).*\\.cc$|^base/yaml_tree\\.cc$")
list(REMOVE_ITEM dhc_core_sources ${dhc_core_once_sources})
add_library(dhc_core_once OBJECT ${dhc_core_once_sources})
target_include_directories(dhc_core_once PRIVATE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/src")
target_link_libraries(dhc_core_once PRIVATE dhc_options fmt::fmt Boost::headers simdjson::simdjson nlohmann_json::nlohmann_json yaml-cpp PkgConfig::re2)
dhc_precompile(dhc_core_once)
dhc_unite(dhc_core_once)

dhc_library(dhc_core ${dhc_core_sources} $<TARGET_OBJECTS:dhc_core_once>)
target_link_libraries(dhc_core
  PUBLIC fmt::fmt
  PRIVATE Boost::headers simdjson::simdjson nlohmann_json::nlohmann_json yaml-cpp PkgConfig::re2)
if(DHC_TESTS)
  # An object file of its own: the scenarios count each call of it.
  set_source_files_properties(domain/history/incident_table.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endif()
set_source_files_properties(base/version.cc PROPERTIES COMPILE_DEFINITIONS "DHC_VERSION=\"${PROJECT_VERSION}\"")

dhc_library(dhc_simulator ${dhc_simulator_sources})
target_link_libraries(dhc_simulator PUBLIC dhc_core PRIVATE nlohmann_json::nlohmann_json PkgConfig::re2)

set(dhc_simulator_server_sources ${DHC_SHELL_SOURCES})
list(FILTER dhc_simulator_server_sources INCLUDE REGEX "^simulator/")
dhc_library(dhc_simulator_server ${dhc_simulator_server_sources})
target_link_libraries(dhc_simulator_server
  PUBLIC dhc_simulator
  PRIVATE Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads nlohmann_json::nlohmann_json)

if(CMAKE_BUILD_TYPE STREQUAL Release)
  # The simulator serves demos and policy tests. For size it takes a third longer to compile than without optimising, and a third of the bytes.
  foreach(library dhc_core_once dhc_simulator dhc_simulator_server)
    target_compile_options(${library} PRIVATE -Os)
  endforeach()
endif()

set(DHC_OPTIMISE_OFTEN_RUN OFF)
if(CMAKE_CXX_FLAGS_DEBUG MATCHES "-O[0g]" AND CMAKE_BUILD_TYPE STREQUAL Debug AND NOT DHC_SANITIZE STREQUAL "thread")
  set(DHC_OPTIMISE_OFTEN_RUN ON)
  # Tests run each of these lines thousands of times and each of their own once: only here does optimising save more time than it takes. What
  # TSan looks at waits for sockets.
  foreach(library dhc_core dhc_core_once dhc_simulator)
    target_compile_options(${library} PRIVATE -O1)
  endforeach()
endif()

set(dhc_shell_sources ${DHC_SHELL_SOURCES})
list(FILTER dhc_shell_sources EXCLUDE REGEX "^simulator/")
if(NOT dhc_shell_sources MATCHES "\\.cc")
  file(WRITE "${CMAKE_BINARY_DIR}/empty.cc" "")
  list(APPEND dhc_shell_sources "${CMAKE_BINARY_DIR}/empty.cc")
endif()
dhc_library(dhc_shell ${dhc_shell_sources})
target_link_libraries(dhc_shell
  PUBLIC dhc_core dhc_simulator_server
  PRIVATE Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads nlohmann_json::nlohmann_json yaml-cpp
          spdlog::spdlog PkgConfig::prometheus CLI11::CLI11)
if(CMAKE_BUILD_TYPE STREQUAL Release)
  # It waits for sockets and hands bytes on; as fast for size, a third smaller, and built in four fifths of the time.
  target_compile_options(dhc_shell PRIVATE -Os)
endif()

# The live page is a part of the program: it asks for nothing else.
set(dhc_page "${CMAKE_SOURCE_DIR}/src/app/live")
set(dhc_page_files "${CMAKE_BINARY_DIR}/generated/page_files.cc")
add_custom_command(OUTPUT "${dhc_page_files}"
  COMMAND "${CMAKE_COMMAND}" "-DOUT=${dhc_page_files}" -DHEADER=app/live/page_files.h "-DFROM=${dhc_page}" -P "${CMAKE_SOURCE_DIR}/cmake/embed.cmake"
  DEPENDS "${CMAKE_SOURCE_DIR}/cmake/embed.cmake" "${dhc_page}/page.html" "${dhc_page}/page.css" "${dhc_page}/page.js" "${dhc_page}/model.js" "${dhc_page}/parts.js" "${dhc_page}/icon.svg"
  VERBATIM)
target_sources(dhc_shell PRIVATE "${dhc_page_files}")
set_source_files_properties("${dhc_page_files}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)

# Which transport the program has is decided there; an object file of its own can be exchanged for another.
set_source_files_properties(k8s-client/transport_factory.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

if(DHC_CPPREST AND DHC_CPPREST_SOURCES)
  dhc_library(dhc_cpprest ${DHC_CPPREST_SOURCES})
  target_link_libraries(dhc_cpprest PUBLIC dhc_shell PRIVATE cpprestsdk::cpprest OpenSSL::SSL OpenSSL::Crypto)
endif()
if(DHC_TRANSPORT STREQUAL cpprest)
  target_compile_definitions(dhc_shell PRIVATE DHC_TRANSPORT_CPPREST=1)
  target_link_libraries(dhc_shell PRIVATE dhc_cpprest)
endif()

if(EXISTS "${CMAKE_SOURCE_DIR}/src/app/main.cc")
  add_executable(device-health-controller ${DHC_MAIN_SOURCES})
  target_link_libraries(device-health-controller PRIVATE dhc_shell CLI11::CLI11 spdlog::spdlog)
endif()
