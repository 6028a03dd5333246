# The CUDA compiler, where it is there: for examples/cuda and the probe of tests/gpu only. Nothing that
# is installed needs it.
option(DAYDREAM_CUDA_PROGRAMS "Build the CUDA programs when the CUDA compiler is there" ON)
set(DAYDREAM_WITH_CUDA OFF)
if(DAYDREAM_CUDA_PROGRAMS AND NOT DAYDREAM_SANITIZE AND NOT DAYDREAM_FUZZ)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(DAYDREAM_WITH_CUDA ON)
  else()
    message(STATUS "examples/cuda is not built: there is no CUDA compiler")
  endif()
endif()
