# One CMake target per layer: a folder's *.cpp become tern_<name>, linked only against the layers it may see.
# A new file in a layer's folder is built without being listed (its registry row is what makes it count).
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Folders of kernels ask for -O3 themselves; elsewhere it would only lengthen the build.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
option(TERN_BUILD_TESTS "Offer the target `tests` (needs GoogleTest)" ON)
option(TERN_WERROR "Warnings are errors in Tern's own code" ON)
set(TERN_SANITIZE "" CACHE STRING "Sanitizers for the whole build: address,undefined or thread")
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

if(TERN_SANITIZE)
  add_compile_options(-fsanitize=${TERN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TERN_SANITIZE})
  # Instrumented code is too tangled for these warnings: g++ 12 gives them inside its own <regex>.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-error=maybe-uninitialized)
  endif()
endif()

function(tern_compile_options target)
  # Designated initialisers leave out what keeps its default; -Wextra would ask for every field.
  set(cxx $<COMPILE_LANGUAGE:CXX>)
  target_compile_options(${target} PRIVATE $<${cxx}:-Wall -Wextra -Wno-missing-field-initializers -Wshadow
    -Wnon-virtual-dtor -Woverloaded-virtual>)
  if(TERN_WERROR)
    target_compile_options(${target} PRIVATE $<${cxx}:-Werror>
      "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
  endif()
endfunction()

# tern_option_sources(source...): files that read command lines or JSON once. Optimising what they include
# takes long, and nobody waits for it when they run.
function(tern_option_sources)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
endfunction()

# tern_layer(name [EXCLUDE file...] [DEPENDS target...] [PRIVATE_DEPENDS target...])
#
# Every layer is entered in the global property TERN_LAYERS; tests/ and the installed library read it.
function(tern_layer name)
  cmake_parse_arguments(ARG "" "" "EXCLUDE;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/cpu/*.cpp)
  foreach(excluded IN LISTS ARG_EXCLUDE)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${excluded})
  endforeach()
  if(sources)
    add_library(tern_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(tern_${name} PRIVATE ${ARG_PRIVATE_DEPENDS})
    tern_compile_options(tern_${name})
  else()
    add_library(tern_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(tern_${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(tern_${name} ${scope} ${ARG_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY TERN_LAYERS tern_${name})
endfunction()

# tern_program(name source... DEPENDS target...): an executable in this folder's place of the build tree.
function(tern_program name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  tern_compile_options(${name})
  install(TARGETS ${name} COMPONENT programs)
endfunction()
