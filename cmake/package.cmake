# cpack: a .deb and a .tar.gz of the program that need no compiler and none of our libraries
# (scripts/package configures for that).
if(NOT DAYDREAM_STATIC)
  return()
endif()
install(FILES examples/resnet50-synthetic.ddtrace examples/launch-bound-synthetic.ddtrace
        DESTINATION share/daydream/examples COMPONENT program)

# Debian has it as a shared library only: it goes where the recorder is, found from the program.
file(REAL_PATH ${pkgcfg_lib_ISAL_isal} isal)
file(GLOB isal_license /usr/share/doc/libisal*/copyright)
get_filename_component(isal_name ${pkgcfg_lib_ISAL_isal} DIRECTORY)
file(GLOB isal_soname ${isal_name}/libisal.so.[0-9])
get_filename_component(isal_soname ${isal_soname} NAME)
install(FILES ${isal} DESTINATION lib/daydream RENAME ${isal_soname} COMPONENT program)
set_target_properties(daydream PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/daydream")

set(CPACK_PACKAGE_NAME daydream)
set(CPACK_PACKAGE_VENDOR "The daydream authors")
set(CPACK_PACKAGE_CONTACT "The daydream authors <noreply@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
# What of the C library it needs is checked by scripts/check-package.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.35)")
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
