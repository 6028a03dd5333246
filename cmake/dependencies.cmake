# What the libraries need from the system. Also read by find_package(daydream).
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(Protobuf REQUIRED)
find_package(Boost REQUIRED)  # headers only: Boost.Graph
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-cpp)
