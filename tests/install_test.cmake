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
foreach(page share/man/man1/daydream.1 share/bash-completion/completions/daydream
        share/zsh/site-functions/_daydream share/fish/vendor_completions.d/daydream.fish)
  file(READ ${work}/prefix/${page} text)
  if(NOT text MATCHES "advise")
    message(FATAL_ERROR "${page} does not know the commands of the program")
  endif()
endforeach()
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${work}/build -G Ninja
    -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/ask ${SOURCE}/examples/launch-bound-synthetic.ddtrace graphs)
if(NOT output MATCHES "baseline +[0-9.]+ ms  1.00x\ngraphs +[0-9.]+ ms")
  message(FATAL_ERROR "the program of docs/library.md printed: ${output}")
endif()
set(answer "${output}")
# The page shows the program that was just built.
foreach(file main.cc CMakeLists.txt)
  file(READ ${SOURCE}/tests/consumer/${file} program)
  string(REGEX REPLACE "^# [^\n]*\n" "" program "${program}")
  file(READ ${SOURCE}/docs/library.md page)
  string(FIND "${page}" "${program}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "docs/library.md does not show tests/consumer/${file}")
  endif()
endforeach()
# All of them are below one folder, where they cannot meet the headers of others.
file(GLOB others RELATIVE ${work}/prefix/include ${work}/prefix/include/*)
list(REMOVE_ITEM others daydream daydream_mark.h)
if(others)
  message(FATAL_ERROR "installed beside include/daydream: ${others}")
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
message(STATUS "${count} headers installed, the program of docs/library.md printed:\n${answer}")
