# Headers of other libraries, parsed once instead of in each of some 400 files: most of a build was
# spent there. Only what nearly every file reads, and nothing of ours: an edit never rebuilds them.
option(DAYDREAM_PCH "Precompile the headers of other libraries" ON)
if(DAYDREAM_FUZZ OR CMAKE_VERSION VERSION_LESS 3.16)
  set(DAYDREAM_PCH OFF)
endif()

set(daydream_precompiled
  <algorithm> <array> <charconv> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory>
  <optional> <set> <span> <string> <string_view> <tuple> <utility> <vector>
  <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h> <absl/status/status.h>
  <absl/status/statusor.h> <fmt/format.h>)

# daydream_precompile_for(KIND HEADER...): makes daydream_precompiled_KIND, whose headers targets
# compiled with the same flags can reuse.
function(daydream_precompile_for kind)
  set(source ${PROJECT_BINARY_DIR}/precompiled/${kind}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Only here to carry the precompiled headers.\n")
  add_library(daydream_precompiled_${kind} OBJECT ${source})
  target_link_libraries(daydream_precompiled_${kind} PRIVATE daydream_options absl::status
    absl::statusor absl::flat_hash_map ${DAYDREAM_FMT})
  target_precompile_headers(daydream_precompiled_${kind} PRIVATE ${daydream_precompiled} ${ARGN})
endfunction()

# daydream_use_precompiled(TARGET KIND)
function(daydream_use_precompiled target kind)
  if(DAYDREAM_PCH)
    target_precompile_headers(${target} REUSE_FROM daydream_precompiled_${kind})
  endif()
endfunction()

# A cold build is twice as fast when files are compiled several at once; an edit then compiles its
# neighbours, too. The release build does; the one to work in compiles each file alone.
option(DAYDREAM_UNITY "Compile several files of a library at once" OFF)

# daydream_unity(TARGET SOURCE...): not for the kernels of the simulator and the one file that the
# recorder shares. What a file has for itself has a name of its own (RunAmp, kAmpParams).
function(daydream_unity target)
  if(NOT DAYDREAM_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
  # The compiler need not look for garbage before it has half a gigabyte.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=524288>)
  foreach(source ${ARGN})
    if(source MATCHES "/simulator/|/ddtrace/frame.cc$")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# daydream_prints(TARGET): its time goes into words, not loops, so less optimization is enough.
function(daydream_prints target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

if(DAYDREAM_PCH)
  daydream_precompile_for(library)
endif()
