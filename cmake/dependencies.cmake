# What the libraries need from the system; find_package(daydream) looks for the same
# (cmake/daydream-config.cmake.in).
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(Protobuf REQUIRED)
find_package(Boost REQUIRED)  # headers only: Boost.Graph
find_package(PkgConfig REQUIRED)
set(DAYDREAM_PKG_CONFIG ZSTD=libzstd ISAL=libisal SQLITE=sqlite3 RE2=re2 YAML=yaml-cpp)
foreach(item ${DAYDREAM_PKG_CONFIG})
  string(REPLACE "=" ";" item ${item})
  list(GET item 0 name)
  list(GET item 1 module)
  pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
endforeach()
