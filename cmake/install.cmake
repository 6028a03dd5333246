# cmake --install: the program, the library with its headers, and the package that makes
# find_package(daydream) and daydream::daydream work.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Everything at once, for those who use the library from their own program.
add_library(daydream_all INTERFACE)
get_property(libraries GLOBAL PROPERTY DAYDREAM_LIBRARIES)
target_link_libraries(daydream_all INTERFACE ${libraries})
set_target_properties(daydream_all PROPERTIES EXPORT_NAME daydream)
add_library(daydream::daydream ALIAS daydream_all)

foreach(program daydream daydream-mpi)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  endif()
endforeach()
# The recorder and what it needs; `daydream trace` looks for them beside its bin folder, so the
# folder is lib/daydream whatever the libraries' own is called.
set(recorder lib/daydream)
if(TARGET daydream_inject)
  install(TARGETS daydream_inject LIBRARY DESTINATION ${recorder} COMPONENT program)
  install(DIRECTORY python/site python/daydream_torch DESTINATION ${recorder}/python
          COMPONENT program FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
  if(TARGET daydream_marks)
    install(TARGETS daydream_marks LIBRARY DESTINATION ${recorder} COMPONENT program)
  endif()
endif()
# Needs no recorder: programs are marked on any machine.
install(FILES tracer/daydream_mark.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT program)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
if(NOT PROJECT_IS_TOP_LEVEL)
  return()  # a part of another project: that one decides what it installs of the library
endif()

# What python/daydream links, from the build folder as it is.
set_target_properties(daydream_tools PROPERTIES EXPORT_NAME tools)
set_target_properties(daydream_examples PROPERTIES EXPORT_NAME examples)
export(TARGETS daydream_options daydream_proto ${libraries} daydream_examples daydream_tools NAMESPACE daydream::
       FILE ${PROJECT_BINARY_DIR}/daydream-objects.cmake)

install(TARGETS daydream_options daydream_all daydream_proto ${libraries}
        EXPORT daydream_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
# Here a header is "graph/graph.h"; installed it is "daydream/graph/graph.h", also where one includes
# another, so that no program's own headers can take its place. Headers with generated types stay.
set(DAYDREAM_HEADER_FOLDERS base trace graph simulator costmodel transforms report library)
install(CODE "
  set(source \"${PROJECT_SOURCE_DIR}\")
  set(target \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/daydream\")
  set(folders \"${DAYDREAM_HEADER_FOLDERS}\")
" COMPONENT library)
install(SCRIPT cmake/install_headers.cmake COMPONENT library)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/daydream)
install(EXPORT daydream_targets FILE daydream-targets.cmake NAMESPACE daydream:: DESTINATION ${package}
        COMPONENT library)
configure_package_config_file(cmake/daydream-config.cmake.in
  ${PROJECT_BINARY_DIR}/daydream-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/daydream-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/daydream-config.cmake
              ${PROJECT_BINARY_DIR}/daydream-config-version.cmake DESTINATION ${package}
        COMPONENT library)
