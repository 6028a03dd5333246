# What makes a mistake of ours harder to use, and a program the same in whatever folder it is built.
# For optimized builds only: debug builds have their checks, and sanitizers want the code as it is.
option(DAYDREAM_HARDENING "Harden optimized builds (fortify, stack protector, RELRO, CET)" ON)
set(DAYDREAM_HARDENED_COMPILE)  # tests/CMakeLists.txt takes them away again
set(DAYDREAM_HARDENED_LINK)     # for programs; what is loaded into others binds as they do
if(DAYDREAM_SANITIZE OR DAYDREAM_FUZZ)
  return()
endif()
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)

# daydream_hardened(FLAG): for C and C++ (the CUDA compiler knows other flags) where there is
# optimization, without which there is no fortification either.
function(daydream_hardened flag)
  list(APPEND DAYDREAM_HARDENED_COMPILE
    "$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>:${flag}>")
  set(DAYDREAM_HARDENED_COMPILE "${DAYDREAM_HARDENED_COMPILE}" PARENT_SCOPE)
endfunction()

# Messages of failed checks and debug information name files from the root of the project.
check_cxx_compiler_flag(-ffile-prefix-map=/a=b DAYDREAM_HAS_PREFIX_MAP)
if(DAYDREAM_HAS_PREFIX_MAP)
  daydream_hardened(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  daydream_hardened(-ffile-prefix-map=${PROJECT_BINARY_DIR}=build)  # the last that fits counts
endif()

if(DAYDREAM_HARDENING)
  daydream_hardened(-U_FORTIFY_SOURCE)
  daydream_hardened(-D_FORTIFY_SOURCE=3)  # older compilers and systems take it as 2
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection)
    string(MAKE_C_IDENTIFIER "DAYDREAM_HAS${flag}" known)
    check_cxx_compiler_flag(${flag} ${known})
    if(${known})
      daydream_hardened(${flag})
    endif()
  endforeach()
  # Full RELRO: the table of functions is filled in at start-up and read-only from then on.
  foreach(flag -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
    string(MAKE_C_IDENTIFIER "DAYDREAM_LINKS${flag}" known)
    check_linker_flag(CXX ${flag} ${known})
    if(${known})
      list(APPEND DAYDREAM_HARDENED_LINK
        "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:${flag}>")
    endif()
  endforeach()
endif()
add_compile_options(${DAYDREAM_HARDENED_COMPILE})
