# Language, warnings, hardening, sanitizers: what every target of ours is compiled with.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Debug CACHE STRING "Debug or Release" FORCE)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(dhc_cpprest_default ON)
else()
  set(dhc_cpprest_default OFF)
endif()
option(DHC_PCH "Precompile the standard headers" ON)
option(DHC_UNITY "Compile sources of a library or suite in batches: a third of the CPU time of a build from nothing" OFF)
option(DHC_CPPREST "Build the cpprestsdk transport as well (g++ only)" ${dhc_cpprest_default})
option(DHC_TESTS "Build the test suites" ON)
option(DHC_FUZZ "Build the libFuzzer targets of tests/fuzz (clang only; of use with DHC_SANITIZE=address,undefined)" OFF)
option(DHC_BENCH "Build the benchmarks of bench/" OFF)
set(DHC_SANITIZE "" CACHE STRING "Sanitizers: address,undefined or thread")
set(DHC_TRANSPORT beast CACHE STRING "Transport of the program: beast or cpprest")
set_property(CACHE DHC_TRANSPORT PROPERTY STRINGS beast cpprest)

if(NOT DHC_TRANSPORT MATCHES "^(beast|cpprest)$")
  message(FATAL_ERROR "DHC_TRANSPORT is '${DHC_TRANSPORT}': it must be beast or cpprest")
endif()
if(DHC_TRANSPORT STREQUAL cpprest AND NOT DHC_CPPREST)
  message(FATAL_ERROR "DHC_TRANSPORT=cpprest needs DHC_CPPREST=ON, which needs g++")
endif()
if(DHC_CPPREST AND NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  message(FATAL_ERROR "DHC_CPPREST needs g++: cpprestsdk's headers do not compile as C++23 with clang")
endif()
if(DHC_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  message(FATAL_ERROR "DHC_FUZZ needs clang")
endif()

include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

# Interface target with the flags of every target of ours.
add_library(dhc_options INTERFACE)
# g++'s -Wconversion leaves sign conversions out and clang's has them: name both.
target_compile_options(dhc_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror)
target_compile_definitions(dhc_options INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
# g++ 12 at -Og takes std::stop_source's own constructor for a read of the source; clang looks for such reads as well.
target_compile_options(dhc_options INTERFACE $<$<AND:$<CONFIG:Debug>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)

if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo)$" AND NOT DHC_SANITIZE)
  target_compile_definitions(dhc_options INTERFACE _GLIBCXX_ASSERTIONS _FORTIFY_SOURCE=3)
  # g++ 12 at -O2 takes moves of short strings out of std::expected for reads past the end, and an empty std::optional for one that is read;
  # clang keeps the warnings, -Og builds all but that of what may be uninitialized.
  target_compile_options(dhc_options INTERFACE -fstack-protector-strong -ffunction-sections -fdata-sections
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>)
  # The program is the same wherever it was built.
  target_compile_options(dhc_options INTERFACE "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")
  target_link_options(dhc_options INTERFACE LINKER:-z,relro,-z,now LINKER:-z,pack-relative-relocs LINKER:--gc-sections LINKER:--as-needed)
endif()

# g++ collects its garbage from 128 MiB on, an eighth of the time that a batch takes; from half a GiB on no batch peaks higher than it did.
target_compile_options(dhc_options INTERFACE "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=524288>")

if(DHC_SANITIZE)
  target_compile_options(dhc_options INTERFACE
    -fsanitize=${DHC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # g++ 12: Boost.optional inside Beast under ASan, and atomic_thread_fence inside Asio under TSan.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  target_link_options(dhc_options INTERFACE -fsanitize=${DHC_SANITIZE})
endif()

# ccache, when it is there: a second checkout or a deleted build directory then costs seconds. CCACHE_DISABLE=1 leaves it out.
find_program(DHC_CCACHE ccache)
if(DHC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers need this sloppiness (ccache's manual, "Precompiled headers"); paths are made relative, so that checkouts share.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime" "${DHC_CCACHE}")
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

# mold links in a quarter of the time. Releases keep the system's linker.
find_program(DHC_MOLD mold)
if(DHC_MOLD AND CMAKE_BUILD_TYPE STREQUAL Debug)
  target_link_options(dhc_options INTERFACE -fuse-ld=mold)
endif()

# Standard headers only: what changes rarely and stands in nearly every file. Batches of the size of a release share them as it is: there
# precompiling costs what it saves.
function(dhc_precompile target)
  if(DHC_PCH)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <chrono> <expected> <functional> <map> <memory> <optional> <ranges> <string> <string_view>
      <unordered_map> <variant> <vector>)
  endif()
endfunction()

# Neighbours of one list share their headers. Two files of a batch must not give two things one name, also not in their own
# anonymous namespaces: the compiler says so. What is edited every day is compiled in small batches, what is compiled once in large ones.
if(CMAKE_BUILD_TYPE STREQUAL Debug AND NOT DHC_SANITIZE)
  set(dhc_unity_batch 12)
else()
  set(dhc_unity_batch 36)
endif()
set(DHC_UNITY_BATCH ${dhc_unity_batch} CACHE STRING "So many sources make a batch")
function(dhc_unite target)
  if(DHC_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${DHC_UNITY_BATCH})
    # g++ takes every file of a batch for a header; a private type of an anonymous namespace is fine in them.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
