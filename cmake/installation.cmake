# `cmake --install` gives the program with its manual and completions, the headers and find_package(Syncopate).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS syncopate-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The program describes itself.
set(described ${CMAKE_BINARY_DIR}/generated/description)
install(CODE "
  file(MAKE_DIRECTORY \"${described}\")
  foreach(text \"manual\" \"completion bash\" \"completion zsh\" \"completion fish\")
    string(REPLACE \" \" \";\" words \"\${text}\")
    string(REPLACE \" \" \".\" name \"\${text}\")
    execute_process(COMMAND \"$<TARGET_FILE:syncopate-program>\" \${words}
                    OUTPUT_FILE \"${described}/\${name}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(FILES ${described}/manual DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME syncopate.1)
install(FILES ${described}/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME syncopate)
install(FILES ${described}/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _syncopate)
install(FILES ${described}/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        RENAME syncopate.fish)

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
