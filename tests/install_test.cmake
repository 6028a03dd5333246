# cmake -DBUILD=... -DSOURCE=... -DCOMPILER=... -P install_test.cmake
# Installs the build, then configures, builds and runs tests/consumer against what was installed.
set(work ${BUILD}/tests/install_test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
run(${work}/prefix/bin/daydream --version)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${work}/build -G Ninja
    -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
if(NOT output STREQUAL "47 us -> 17 us\n")
  message(FATAL_ERROR "the consumer printed: ${output}")
endif()
# The recorder finds its parts where they were installed to, and programs the header for marks.
if(RECORDER)
  foreach(file lib/daydream/libdaydream_inject.so lib/daydream/python/site/sitecustomize.py
          lib/daydream/python/daydream_torch/__init__.py include/daydream_mark.h)
    if(NOT EXISTS ${work}/prefix/${file})
      message(FATAL_ERROR "not installed: ${file}")
    endif()
  endforeach()
  # Its exit code says whether this machine can record; here only the files count.
  execute_process(COMMAND ${work}/prefix/bin/daydream doctor --format json OUTPUT_VARIABLE output)
  if(NOT output MATCHES "${work}/prefix/lib/daydream/libdaydream_inject.so")
    message(FATAL_ERROR "the installed program does not find its recorder: ${output}")
  endif()
endif()
file(GLOB_RECURSE headers ${work}/prefix/include/*.h)
list(LENGTH headers count)
message(STATUS "${count} headers installed, the consumer printed: ${output}")
