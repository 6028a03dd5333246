# Compiler settings shared by every target, and the function that makes a library of a folder.
option(DAYDREAM_TESTS "Build the tests" ON)
option(DAYDREAM_BENCHMARKS "Build the benchmarks" OFF)
option(DAYDREAM_SANITIZERS_SUFFICE
  "Leave tests that scripts/test --sanitizers runs whole under the sanitizers out of the target all" OFF)
option(DAYDREAM_FUZZ "Build the fuzz targets with libFuzzer (clang only)" OFF)
set(DAYDREAM_SANITIZE "" CACHE STRING "Sanitizers for everything, as in -fsanitize=")

# A warning is an error with the compilers that the code is checked with; another version may know
# warnings that nobody has seen yet, and must still build.
set(werror_default OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  set(werror_default ON)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14\\.")
  set(werror_default ON)
endif()
option(DAYDREAM_WERROR "Treat warnings as errors" ${werror_default})

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without the first it would not look into files that use precompiled headers; with the others a second
  # checkout, in another folder, finds what the first compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
# Some libraries ask for it; precompiled headers fit only where all files are compiled alike.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-pthread>)
if(DAYDREAM_SANITIZE)
  add_compile_options(-fsanitize=${DAYDREAM_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DAYDREAM_SANITIZE})
endif()
if(DAYDREAM_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

set(warnings -Wall -Wextra
    -Wno-missing-field-initializers)  # designated initialisers leave the rest at their defaults
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bugs 105651 and 105329: false where strings are put together.
  list(APPEND warnings -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread
       -Wno-array-bounds)
endif()
if(DAYDREAM_WERROR)
  list(APPEND warnings $<$<CONFIG:Debug>:-Werror>)  # the optimizer warns of what cannot happen
endif()
add_library(daydream_options INTERFACE)
target_compile_features(daydream_options INTERFACE cxx_std_20)
target_compile_options(daydream_options INTERFACE $<BUILD_INTERFACE:${warnings}>)
target_include_directories(daydream_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)

# daydream_library(NAME DEPENDENCY...): all *.cc of the current folder and the folders in it become
# one static library, daydream::NAME. A new source file needs no edit here.
function(daydream_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(sources)
    add_library(daydream_${name} STATIC ${sources})
    target_link_libraries(daydream_${name} PUBLIC daydream_options ${ARGN})
    daydream_use_precompiled(daydream_${name} library)
    daydream_unity(daydream_${name} ${sources})
  else()
    add_library(daydream_${name} INTERFACE)
    target_link_libraries(daydream_${name} INTERFACE daydream_options ${ARGN})
  endif()
  set_target_properties(daydream_${name} PROPERTIES EXPORT_NAME ${name})
  add_library(daydream::${name} ALIAS daydream_${name})
  set_property(GLOBAL APPEND PROPERTY DAYDREAM_LIBRARIES daydream_${name})
endfunction()
