# Sourced by the other scripts: the repository root, the compiler and the number of jobs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One compiler needs up to about 1 GiB, so a small machine runs fewer than it has cores.
job_count() {
  local cores memory
  cores=$(nproc 2>/dev/null || echo 2)
  memory=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null || echo 4)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# Where the default compiler is too old for C++20 (Ubuntu 22.04), a newer one stands beside it.
choose_compiler() {
  [ -z "${CXX:-}" ] || return 0
  local version
  version=$(g++ -dumpversion 2>/dev/null || echo 0)
  if [ "${version%%.*}" -lt 12 ] && command -v g++-12 >/dev/null; then
    export CXX=g++-12
  fi
}

# configure PRESET: quick when the build folder is already configured.
configure() {
  choose_compiler
  cmake --preset "$1" ${2:+"${@:2}"}
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  cmake --build "build/$preset" -j "$(job_count)" ${1:+--target "$@"}
}
