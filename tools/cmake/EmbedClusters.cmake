# tern_embed_clusters(output file...): a source file that defines built_in_clusters() with the files' text.
function(tern_embed_clusters output)
  set(rows "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    cmake_path(GET file STEM name)
    file(READ ${file} text)
    string(APPEND rows "    {\"${name}\", R\"json(${text})json\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT [[
#include "tools/built_in_clusters.h"

namespace tern::tools {

std::span<const BuiltInCluster> built_in_clusters() {
  static constexpr BuiltInCluster kClusters[] = {
@rows@  };
  return kClusters;
}

}  // namespace tern::tools
]] @ONLY)
endfunction()
