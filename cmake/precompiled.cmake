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
    absl::statusor absl::flat_hash_map fmt::fmt)
  target_precompile_headers(daydream_precompiled_${kind} PRIVATE ${daydream_precompiled} ${ARGN})
endfunction()

# daydream_use_precompiled(TARGET KIND)
function(daydream_use_precompiled target kind)
  if(DAYDREAM_PCH)
    target_precompile_headers(${target} REUSE_FROM daydream_precompiled_${kind})
  endif()
endfunction()

if(DAYDREAM_PCH)
  daydream_precompile_for(library)
endif()
