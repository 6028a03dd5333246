# What the libraries need from the system; find_package(daydream) looks for the same
# (cmake/daydream-config.cmake.in). The floors are what Ubuntu 22.04 has, the oldest system that is
# built on.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)  # by hand: its releases are never compatible by CMake's rules
if(absl_VERSION AND absl_VERSION VERSION_LESS 20210324)
  message(FATAL_ERROR "Abseil 20210324 or newer is needed; found ${absl_VERSION}")
endif()
find_package(fmt 8.1 REQUIRED)
find_package(Protobuf 3.12 REQUIRED)
find_package(Boost 1.74 REQUIRED)  # headers only: Boost.Graph
find_package(PkgConfig REQUIRED)
set(DAYDREAM_PKG_CONFIG ZSTD=libzstd ISAL=libisal SQLITE=sqlite3 RE2=re2 YAML=yaml-cpp)
foreach(item ${DAYDREAM_PKG_CONFIG})
  string(REPLACE "=" ";" item ${item})
  list(GET item 0 name)
  list(GET item 1 module)
  pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
endforeach()
# RE2 tells 0.0.0 or the number of its interface, whatever its version.
set(DAYDREAM_PKG_CONFIG_FLOORS ZSTD=1.4.8 ISAL=2.30 YAML=0.7 SQLITE=3.37)
foreach(floor ${DAYDREAM_PKG_CONFIG_FLOORS})
  string(REPLACE "=" ";" floor ${floor})
  list(GET floor 0 name)
  list(GET floor 1 version)
  if(${name}_VERSION VERSION_LESS version)
    message(FATAL_ERROR "${name} ${version} or newer is needed; found ${${name}_VERSION}")
  endif()
endforeach()
