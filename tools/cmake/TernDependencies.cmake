# What Tern takes from well-kept libraries; each is a Debian package that tools/setup installs.
include(TernLinkDependencies)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
if(TERN_BUILD_TESTS)
  find_package(GTest QUIET)
endif()

# Debian's dnnl-config.cmake asks for OpenCL even when oneDNN was built without it, so it is found by hand.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR dnnl.hpp PATH_SUFFIXES oneapi/dnnl REQUIRED)
add_library(tern_dnnl INTERFACE)
target_link_libraries(tern_dnnl INTERFACE ${DNNL_LIBRARY})
target_include_directories(tern_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})

include(TernCuda)
