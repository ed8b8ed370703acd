# The installed runtime: one library `tern` with the objects of all runtime layers, its headers, a CMake
# package and a pkg-config file. Included after runtime/ and kernels/ and before trainer/, so that TERN_LAYERS
# holds those layers only.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Collects the objects of the layers and the libraries that are not layers.
get_property(layers GLOBAL PROPERTY TERN_LAYERS)
set(objects "")
set(libraries "")
foreach(layer IN LISTS layers)
  get_target_property(type ${layer} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    continue()
  endif()
  list(APPEND objects $<TARGET_OBJECTS:${layer}>)
  get_target_property(links ${layer} LINK_LIBRARIES)
  list(APPEND libraries ${links})
endforeach()
# nlohmann_json is headers only, and no installed function needs it to link.
list(FILTER libraries EXCLUDE REGEX "^(tern_|nlohmann_json)")
list(REMOVE_DUPLICATES libraries)

add_library(tern ${objects})
set_target_properties(tern PROPERTIES LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_compile_features(tern PUBLIC cxx_std_20)
target_link_libraries(tern PUBLIC ${libraries})
target_include_directories(tern PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tern>)

# pkg-config names of those libraries; Threads is a compiler flag.
set(requires fmt)
foreach(library IN LISTS libraries)
  if(library MATCHES "^PkgConfig::(.*)$")
    string(APPEND requires " ${${CMAKE_MATCH_1}_MODULE_NAME}")
  endif()
endforeach()
# Relative, because the installed tree may be moved.
file(RELATIVE_PATH prefix_from_pkgconfig /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tern.pc.in ${PROJECT_BINARY_DIR}/tern.pc @ONLY)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tern)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/tern-config.cmake.in ${PROJECT_BINARY_DIR}/tern-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tern-config-version.cmake
  COMPATIBILITY SameMinorVersion)

install(TARGETS tern EXPORT tern-targets COMPONENT development)
install(EXPORT tern-targets NAMESPACE tern:: DESTINATION ${package_dir} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/tern-config.cmake ${PROJECT_BINARY_DIR}/tern-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/TernLinkDependencies.cmake DESTINATION ${package_dir} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/tern.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/kernels
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tern COMPONENT development
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(FILES ${PROJECT_SOURCE_DIR}/runtime/tern.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tern COMPONENT development)
