# cmake --install: the program, the libraries with their headers, and the package that makes
# find_package(daydream) and daydream::daydream work.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Everything at once, for those who use the libraries from their own program.
add_library(daydream_all INTERFACE)
get_property(libraries GLOBAL PROPERTY DAYDREAM_LIBRARIES)
target_link_libraries(daydream_all INTERFACE ${libraries})
set_target_properties(daydream_all PROPERTIES EXPORT_NAME daydream)
add_library(daydream::daydream ALIAS daydream_all)

foreach(program daydream daydream-mpi)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
# The recorder and what it needs; `daydream trace` looks for them beside its bin folder, so the
# folder is lib/daydream whatever the libraries' own is called.
set(recorder lib/daydream)
if(TARGET daydream_inject)
  install(TARGETS daydream_inject LIBRARY DESTINATION ${recorder})
  install(DIRECTORY python/site python/daydream_torch DESTINATION ${recorder}/python
          FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
  if(TARGET daydream_marks)
    install(TARGETS daydream_marks LIBRARY DESTINATION ${recorder})
  endif()
endif()
# Needs no recorder: programs are marked on any machine.
install(FILES tracer/daydream_mark.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

install(TARGETS daydream_options daydream_all daydream_proto ${libraries}
        EXPORT daydream_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(folder base trace graph simulator costmodel transforms report)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/daydream
          FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/daydream)
install(EXPORT daydream_targets FILE daydream-targets.cmake NAMESPACE daydream:: DESTINATION ${package})
configure_package_config_file(cmake/daydream-config.cmake.in
  ${PROJECT_BINARY_DIR}/daydream-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/daydream-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/daydream-config.cmake
              ${PROJECT_BINARY_DIR}/daydream-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake DESTINATION ${package})
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
