# What `cmake --install` leaves behind: the program, one library, its headers, and how to find them.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/sluice")

if(SLUICE_PROGRAM)
  install(TARGETS sluice RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(
  TARGETS libsluice
  EXPORT sluice-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
if(SLUICE_ENGINE)
  install(
    TARGETS libsluice_engine
    EXPORT sluice-engine-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(
    EXPORT sluice-engine-targets
    NAMESPACE sluice::
    DESTINATION "${package_dir}")
endif()
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/sluice"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h")

# ---- find_package(sluice) ------------------------------------------------------------------------

install(
  EXPORT sluice-targets
  NAMESPACE sluice::
  DESTINATION "${package_dir}")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/sluice-config.cmake.in" "${PROJECT_BINARY_DIR}/sluice-config.cmake"
  INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may break what the one before it promised.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/sluice-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/sluice-config.cmake"
              "${PROJECT_BINARY_DIR}/sluice-config-version.cmake" DESTINATION "${package_dir}")

# ---- pkg-config sluice ---------------------------------------------------------------------------

# Where only the static library is installed, nobody should have to know about --static.
if(BUILD_SHARED_LIBS)
  set(SLUICE_PC_REQUIRES "Requires.private")
  set(SLUICE_PC_LIBS "")
else()
  set(SLUICE_PC_REQUIRES "Requires")
  set(SLUICE_PC_LIBS "-ldate-tz -pthread")
endif()
file(RELATIVE_PATH SLUICE_PREFIX_FROM_PC "/root/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/root")
configure_file("${PROJECT_SOURCE_DIR}/cmake/sluice.pc.in" "${PROJECT_BINARY_DIR}/sluice.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/sluice.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
