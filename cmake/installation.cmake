# `cmake --install` gives the program, the headers and find_package(Syncopate).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS syncopate-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS syncopate EXPORT SyncopateTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY syncopate/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/syncopate
        FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE)
install(FILES ${CMAKE_BINARY_DIR}/generated/syncopate/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/syncopate)
install(EXPORT SyncopateTargets NAMESPACE Syncopate:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Syncopate)
configure_package_config_file(cmake/SyncopateConfig.cmake.in ${CMAKE_BINARY_DIR}/SyncopateConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Syncopate)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/SyncopateConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/SyncopateConfig.cmake ${CMAKE_BINARY_DIR}/SyncopateConfigVersion.cmake
              cmake/libtorch.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Syncopate)
